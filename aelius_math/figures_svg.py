"""From matplotlib's SVG to the page's: CSS colours, text that stays text, ids under the plot's name, nothing unused."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# matplotlib wants real colours: these stand in for CSS ones until the SVG is written. The second value is what a
# page without the site's style sheet shows (JupyterLab), legible on white and on near-black.
SERIES = {
    f"#f1000{i}": f"var(--plot-{i}, {fallback})"
    for i, fallback in enumerate(["#2a82a8", "#c8622b", "#6f8f2f", "#9a6bb0", "#a5851c", "#78838f"], start=1)
}
INK = "#f1000a"
"""The colour of the surrounding text."""
PAPER = "#f1000b"
"""The colour of the page: the gap between two parts of a bar, or text on a filled part."""
_CSS = {**SERIES, INK: "currentColor", PAPER: "var(--plot-paper, #fff)"}


def parts(markup: str) -> list[tuple[str, str]]:
    """Markup cut into (text, id) pairs, the id empty where the text is not bound.

    >>> parts("[289,661](num:pool) live")
    [('289,661', 'pool'), (' live', '')]
    """
    found: list[tuple[str, str]] = []
    for index, piece in enumerate(re.split(r"\[([^\]]*)\]\(num:([a-z0-9_]+)\)", markup)):
        if index % 3 == 2:
            found[-1] = (found[-1][0], piece)
        elif piece:
            found.append((piece, ""))
    return found


_NS = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"


def write(fig: Figure, style: Any, name: str, alt: str, bound: str) -> str:
    """The figure as SVG for a page: CSS colours, ids under the plot's name, no size of its own, nothing unused."""
    import matplotlib

    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context({**style, "svg.hashsalt": name}):
        fig.savefig(buffer, format="svg", dpi=72, transparent=True, metadata=nothing)
    source = buffer.getvalue()
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', source))
    root = ET.fromstring(source)
    _clean(root, name, used)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "width": view.split()[2], "role": "img", "aria-label": alt})
    if bound:
        root.attrib["data-numbers"] = bound
    for element in root.iter():
        element.tag = element.tag.removeprefix(_NS)
    return ET.tostring(root, encoding="unicode").strip()


def _clean(parent: ET.Element, name: str, used: set[str]) -> None:
    """Rewrites the children of one element, deepest first, and lifts what an empty group held."""
    children: list[ET.Element] = []
    for child in parent:
        tag = child.tag.removeprefix(_NS)
        link = child.attrib.get(_HREF, "")
        if tag in ("metadata", "style"):
            continue
        _clean(child, name, used)
        _attributes(child, tag, name, used)
        child.tail = "\n"
        if tag in ("g", "defs") and not len(child):
            continue
        if tag == "path" and child.attrib.get("style", "").strip() == "fill: none":
            continue  # the frames that matplotlib draws behind everything
        if tag == "a" and link.startswith("say:"):
            for text in child:
                _bind(text, unquote(link.removeprefix("say:")))
            children.extend(child)
        elif tag == "g" and not child.attrib:
            children.extend(child)
        else:
            children.append(child)
    parent[:] = children
    if parent.tag != _NS + "text" and len(parent):
        parent.text = "\n"


def _attributes(element: ET.Element, tag: str, name: str, used: set[str]) -> None:
    attributes = dict(element.attrib)
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id":
            if value not in used:
                continue
            value = f"{name}-{value}"
        elif key == _HREF:
            key, value = "href", re.sub(r"^#", f"#{name}-", value)
        elif key in ("d", "x", "y", "width", "height", "transform", "points"):
            if re.fullmatch(r"rotate\(-?0 .*\)", value):
                continue
            value = re.sub(r"-?\d+\.\d+", _short, " ".join(value.split()))
        value = re.sub(r"url\(#", f"url(#{name}-", value)
        element.attrib[key] = value
    style = element.attrib.pop("style", "")
    for sentinel, css in _CSS.items():
        style = style.replace(sentinel, css)
    rules = dict(re.findall(r"([a-z-]+): ([^;]+)", style))
    if tag == "text":  # attributes, which the page's style sheet may override; the font is the page's
        rules.pop("font-family", None)
        size = rules.pop("font-size", "13px").removesuffix("px")
        element.attrib.update({"font-size": size, **{k: v for k, v in rules.items() if "var(" not in v}})
        rules = {k: v for k, v in rules.items() if "var(" in v}
    if rules:
        element.attrib["style"] = "; ".join(f"{key}: {value}" for key, value in rules.items())


def _short(match: re.Match[str]) -> str:
    """A coordinate to a hundredth of a pixel, so that the last bits of a float do not show."""
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _bind(text: ET.Element, markup: str) -> None:
    """Puts the links of the markup into the SVG text that shows it."""
    text.text, last = "", None
    for part, number in parts(markup):
        if number:
            last = ET.SubElement(text, "a", {"xlink:href": f"num:{number}"})
            last.text, last.tail = part, ""
        elif last is None:
            text.text += part
        else:
            last.tail = part
