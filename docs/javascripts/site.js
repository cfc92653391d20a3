// What the pages add to themselves; every page reads well without it.

// --- Light or dark: as the system has it, until the reader says otherwise.
document.querySelector(".scheme")?.addEventListener("click", () => {
  const root = document.documentElement
  const dark = (root.dataset.scheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark"
  root.dataset.scheme = dark ? "light" : "dark"
  try {
    localStorage.setItem("scheme", root.dataset.scheme)
  } catch {} // a browser that keeps nothing: the choice holds for this page
})

// --- Bound numbers: what a number is and where it comes from, by mouse, keyboard and touch.
// The text is the link's title, taken over so that the browser's own tip does not come too. Escape closes it, the
// pointer may enter it; a first tap opens it, a second follows the number to the ledger, and so does a tap on the tip. Its link
// is no stop of the keyboard: the number itself, which has the focus, leads to the same place.
{
  const tip = document.querySelector("main").appendChild(document.createElement("div"))
  const said = tip.appendChild(document.createElement("div"))
  const way = Object.assign(document.createElement("a"), { tabIndex: -1, textContent: "In the ledger" })
  tip.className = "tip"
  tip.id = "tip"
  tip.hidden = true
  said.id = "tip-said"
  said.role = "tooltip"
  let open = null, waiting = 0, touched = false

  const fill = (text) => {
    const [first, ...rest] = text.split("\n")
    said.replaceChildren(Object.assign(document.createElement("b"), { textContent: first }))
    rest.forEach((line, index) => {
      const part = Object.assign(document.createElement("span"), { textContent: line })
      if (index) part.className = "how"
      said.append(part)
    })
  }
  const place = (link) => {
    const at = link.getClientRects()[0], room = document.documentElement.clientWidth
    const above = at.bottom + tip.offsetHeight + 12 > innerHeight && at.top > tip.offsetHeight + 60
    const from = (tip.offsetParent || document.body).getBoundingClientRect()
    tip.style.left = Math.max(12, Math.min(at.left, room - tip.offsetWidth - 12)) - from.left + "px"
    tip.style.top = (above ? at.top - tip.offsetHeight - 5 : at.bottom + 5) - from.top + "px"
  }
  const show = (link) => {
    clearTimeout(waiting)
    if (open === link) return
    hide()
    if (link.title) {
      link.dataset.about = link.title
      link.removeAttribute("title")
    }
    if (!link.dataset.about) return
    open = link
    fill(link.dataset.about)
    way.href = link.href
    tip.append(way) // a link that leads nowhere yet is none for those who crawl
    tip.hidden = false
    link.classList.add("open")
    link.setAttribute("aria-describedby", "tip-said")
    place(link)
  }
  const hide = () => {
    clearTimeout(waiting)
    if (!open) return
    open.classList.remove("open")
    open.removeAttribute("aria-describedby")
    tip.hidden = true
    open = null
  }
  const number = (event) => event.target.closest?.("a.num")

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return
    const link = number(event)
    clearTimeout(waiting)
    if (link) waiting = setTimeout(() => show(link), 120)
    else if (open && !tip.contains(event.target)) waiting = setTimeout(hide, 200)
  })
  document.addEventListener("pointerdown", (event) => {
    touched = event.pointerType === "touch"
    if (!number(event) && !tip.contains(event.target)) hide()
  })
  document.addEventListener("click", (event) => {
    const link = number(event)
    if (link && touched && open !== link) {
      event.preventDefault()
      show(link)
    }
  })
  document.addEventListener("focusin", (event) => {
    const link = number(event)
    if (!link && !tip.contains(event.target)) hide()
    else if (link && !touched) show(link)
  })
  document.addEventListener("keydown", (event) => {
    touched = false
    if (event.key === "Escape") hide()
  })
  addEventListener("resize", hide)
}

// --- Back leads to where a link was followed: what the browser lays out late would put that place elsewhere.
addEventListener("click", (event) => {
  const place = event.target.closest?.(".md-content a[href]")?.closest("[id]")
  if (place && !event.defaultPrevented) history.replaceState({ ...history.state, place: place.id, top: place.getBoundingClientRect().top }, "")
})
if (history.state?.place && performance.getEntriesByType("navigation")[0]?.type === "back_forward") {
  const { place, top } = history.state
  let frames = 40
  const stay = () => {
    const element = document.getElementById(place)
    if (!element || !frames--) return
    scrollBy(0, element.getBoundingClientRect().top - top)
    requestAnimationFrame(stay)
  }
  const free = () => (frames = 0)
  for (const moved of ["wheel", "touchstart", "keydown"]) addEventListener(moved, free, { once: true, passive: true })
  addEventListener("load", stay)
}

// --- What scrolls sideways can be reached by keyboard. A few boxes at a time, when the browser has nothing else to do: cells
// below the screen, which the styles leave until then, are laid out here.
{
  const idle = self.requestIdleCallback || ((then) => setTimeout(then, 1))
  const some = (boxes) => {
    for (const box of boxes) box.closest(".note-code, .note-output")?.style.setProperty("content-visibility", "visible")
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth + 1) // all read before any is written: one layout
    boxes.forEach((box, index) => {
      if (wide[index]) box.tabIndex = 0
      else if (!box.matches("[role]")) box.removeAttribute("tabindex")
    })
  }
  let turn = 0
  const scrolls = () => {
    const mine = ++turn
    const boxes = [...document.querySelectorAll(".md-typeset__scrollwrap, .note-output, .scrolls, .md-typeset pre, div.mathematics")]
    const next = () => {
      if (mine !== turn) return
      some(boxes.splice(0, 2))
      if (boxes.length) idle(next)
      else document.documentElement.classList.remove("settling")
    }
    document.documentElement.classList.add("settling")
    idle(next)
  }
  addEventListener("load", scrolls)
  addEventListener("resize", scrolls)
  document.addEventListener("toggle", scrolls, true)
}

// --- A button to copy a block of code.
if (navigator.clipboard)
  for (const block of document.querySelectorAll(".highlight")) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" })
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent)
      button.textContent = "Copied"
      setTimeout(() => (button.textContent = "Copy"), 1500)
    })
    block.append(button)
  }

// --- A plot with stops: a slider over the rows of the table below it, which has all the numbers.
for (const stops of document.querySelectorAll(".plot details.stops")) {
  const make = (tag, fields, ...children) => {
    const element = Object.assign(document.createElement(tag), fields)
    element.append(...children)
    return element
  }
  const [first, ...others] = [...stops.querySelectorAll("thead th")].map((head) => head.textContent)
  const rows = [...stops.querySelectorAll("tbody tr")]
  const body = stops.parentElement.querySelector(".plot-body")
  const mark = make("div", { className: "plot-mark", ariaHidden: "true" })
  const input = make("input", { type: "range", min: "0", max: String(rows.length - 1), step: "1" })
  const output = make("output", { ariaLive: "off" }) // a screen reader hears it as the slider's value
  mark.style.top = `${stops.dataset.top * 100}%`
  mark.style.bottom = `${stops.dataset.bottom * 100}%`
  input.value = String(rows.findIndex((row) => "start" in row.dataset))
  const move = () => {
    const row = rows[Number(input.value)]
    const [value, ...rest] = [...row.cells].map((cell) => cell.textContent)
    const said = rest.map((text, index) => [others[index], text])
    mark.style.left = `${row.dataset.x * 100}%`
    output.replaceChildren(make("b", { textContent: value }), ...said.map(([name, text]) => make("span", {}, `${name} `, make("b", { textContent: text }))))
    input.setAttribute("aria-valuetext", [value, ...said.map((pair) => pair.join(" "))].join(", "))
  }
  input.addEventListener("input", move)
  move()
  body.append(mark)
  body.after(make("div", { className: "plot-slider" }, make("label", {}, first[0].toUpperCase() + first.slice(1), input), output))
}
