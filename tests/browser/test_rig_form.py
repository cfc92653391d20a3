"""Your rig as somebody types: nothing typed is lost or changed, what is wrong is said where it is, an answer is told once.

One page for all of these tests: Python takes seconds to load.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import watch
from every_page import STICKS_OUT, violations
from playwright.sync_api import Browser, Page, expect

LOG = (Path(__file__).parents[1] / "logs" / "tp2_028.txt").read_text(encoding="utf-8")
SLOW = 60_000
SMALL = "engine=vllm&memory=available&model=qwen3-8b&available=8&max_model_len=32K"
CARDS = "engine=vllm&memory=cards&model=qwen3-8b&weights=8&extra=2&gpu_memory_utilization=0.8&tensor_parallel_size=2&version=0.33.0&cards="
CARDS += json.dumps([{"card": "rtx-3090", "tenant": "2 GiB"}, {"card": "rtx-4090"}])


@pytest.fixture(scope="module")
def loaded(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    watch(page, address)
    page.goto(address + "rig/#" + SMALL)
    expect(page.locator(".rig-headline")).to_be_visible(timeout=SLOW)
    yield page
    context.close()


@pytest.fixture
def rig(loaded: Page) -> Iterator[Page]:
    loaded.problems.clear()  # type: ignore[attr-defined]
    yield loaded
    assert loaded.problems == []  # type: ignore[attr-defined]


def at(page: Page, settings: str) -> str:
    """Follows a shared link within the page; gives the headline, if there is one."""
    page.evaluate(
        """async (settings) => {
          history.replaceState(null, "", location.pathname)
          const followed = new Promise((then) => addEventListener("hashchange", then, { once: true }))
          location.hash = settings
          await followed
        }""",
        settings,
    )
    expect(page.locator("#rig-answer:not([aria-busy])")).to_be_visible(timeout=SLOW)
    found = page.locator(".rig-headline")
    return found.inner_text() if found.count() else ""


def test_a_shared_address_means_the_same_whatever_k_and_unit_the_page_stood_on(rig: Page) -> None:
    plain = at(rig, SMALL)
    assert "32,768 tokens long" in plain
    other = at(rig, SMALL + "&k=1000&unit=GB")
    assert "32,000 tokens long" in other and other != plain
    assert at(rig, SMALL) == plain
    expect(rig.get_by_role("radio", name="1,024")).to_be_checked()
    expect(rig.get_by_role("radio", name="GiB")).to_be_checked()


def test_the_unit_of_a_bare_size_stays_the_one_it_was_typed_in(rig: Page) -> None:
    answer = at(rig, SMALL)
    rig.get_by_role("radiogroup", name="Sizes in").get_by_text("GB", exact=True).click()
    expect(rig.locator("[name=available]")).to_have_value("8 GiB")
    expect(rig.locator(".rig-picture figcaption")).to_contain_text("8.59 GB")
    expect(rig.locator(".rig-headline")).to_have_text(answer)


def test_what_was_typed_for_a_card_outlives_its_number_the_other_engine_and_a_reload(rig: Page) -> None:
    assert "tokens are live" in at(rig, CARDS.replace("tensor_parallel_size=2", "tensor_parallel_size=1"))
    count, second = rig.locator("[name=count]"), rig.locator(".rig-card:nth-child(2) select")
    count.fill("")
    expect(rig.locator(".rig-problem")).to_contain_text("from 1 to 16")
    expect(count).to_have_attribute("aria-invalid", "true")
    count.fill("99")
    expect(rig.locator(".rig-problem")).to_contain_text("got '99'")
    count.fill("1")
    expect(rig.locator(".rig-card")).to_have_count(1)
    count.fill("3")
    expect(second).to_have_value("rtx-4090")
    rig.locator("[name=engine]").select_option("llama.cpp")
    rig.reload()  # at once: what was typed last is kept too
    expect(rig.locator("[name=engine]")).to_have_value("llama.cpp")
    rig.locator("[name=engine]").select_option("vllm")
    expect(second).to_have_value("rtx-4090")
    expect(rig.locator(".rig-card")).to_have_count(3)
    expect(rig.locator(".rig-card:nth-child(1) [data-field=tenant]")).to_have_value("2 GiB")
    expect(rig.locator(".rig-headline")).to_be_visible(timeout=SLOW)


def test_a_cards_own_field_is_named_marked_and_reached(rig: Page) -> None:
    assert "tokens are live" in at(rig, CARDS)
    tenant = rig.locator(".rig-card:nth-child(2) [data-field=tenant]")
    tenant.fill("-3 GiB")
    rig.get_by_role("button", name="Card 2, Other programs on it").click()
    expect(tenant).to_be_focused()
    expect(tenant).to_have_attribute("aria-invalid", "true")


def test_what_is_replaced_can_be_taken_back(rig: Page) -> None:
    mine = at(rig, CARDS)
    rig.evaluate("document.querySelector('#rig-article').click()")
    expect(rig.locator(".rig-headline")).to_contain_text("289,661 tokens are live at once")
    rig.get_by_role("button", name="Back to what was there").click()
    expect(rig.locator(".rig-headline")).to_have_text(mine)
    expect(rig.locator(".rig-card:nth-child(2) select")).to_have_value("rtx-4090")
    expect(rig.locator("#rig-undo")).to_be_hidden()


def test_a_value_that_the_list_does_not_have_is_kept_and_judged(rig: Page) -> None:
    assert "29,000 tokens long" in at(
        rig, "engine=vllm&memory=available&model=qwen3-8b&available=8&version=0.6.4.post1&max_model_len=29000"
    )
    expect(rig.locator("[name=version]")).to_have_value("0.6.4.post1")
    expect(rig.locator(".rig-taken")).not_to_contain_text("Version")
    at(rig, "engine=vllm&memory=available&model=gpt-7&available=8+GiB")
    expect(rig.locator(".rig-problem")).to_contain_text("gpt-7")


def test_an_answer_is_told_once_and_nothing_of_a_half_typed_value(rig: Page) -> None:
    at(rig, SMALL)
    rig.wait_for_timeout(1200)  # until the answer is told
    rig.evaluate("""() => {
      window.told = []
      new MutationObserver(() => window.told.push(document.querySelector('#rig-said').textContent)).observe(
        document.querySelector('#rig-said'), { childList: true, characterData: true, subtree: true })
    }""")
    field = rig.locator("[name=available]")
    field.fill("")
    field.press_sequentially("12.5 GiB", delay=60)
    rig.wait_for_function("window.told.length > 0", timeout=SLOW)
    rig.wait_for_timeout(1200)
    told = rig.evaluate("window.told")
    assert len(told) == 1 and "tokens are live" in told[0], told


def test_the_prefill_kernel_is_asked_only_where_it_decides(rig: Page) -> None:
    fragment = "engine=vllm&memory=available&model=qwen3.8-27b&available=24+GiB&version=0.32.0"
    assert "tokens are live" in at(rig, fragment)
    kernel = rig.locator("[name=gdn_prefill_backend]")
    expect(kernel).to_be_hidden()
    rig.locator("[name=version]").select_option("0.33.0")
    expect(kernel).to_be_visible()
    kernel.select_option("flashinfer")
    expect(rig.locator(".rig-copies pre")).to_contain_text("--gdn-prefill-backend flashinfer")
    rig.wait_for_function("location.hash.includes('gdn_prefill_backend=flashinfer')")
    rig.locator("[name=version]").select_option("0.32.0")
    expect(kernel).to_be_visible()  # what was chosen is not hidden


def test_the_link_that_is_copied_holds_the_settings_whatever_anchor_the_address_shows(rig: Page) -> None:
    answer = at(rig, CARDS)
    rig.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    rig.evaluate("history.replaceState(null, '', '#the-same-on-a-command-line')")
    rig.get_by_role("button", name="Copy the link").click()
    link = rig.evaluate("window.copied")
    assert "model=qwen3-8b" in link and "cards=" in link
    assert at(rig, SMALL) != answer
    assert at(rig, link.partition("#")[2]) == answer


def test_every_step_of_a_derivation_leads_to_the_section_that_explains_it(rig: Page, site: Path) -> None:
    links = []
    for fragment in (
        "engine=llama.cpp&model=qwen3.8-27b&n_ctx=64K&n_seq_max=1&free=23962&weights_mib=16000&draft_max=1",
        'engine=vllm&memory=cards&model=qwen3.8-27b&weights=10&extra=2&version=0.28.0&kv_cache_dtype=fp8&cards=[{"card":"rtx-3090"}]',
    ):
        at(rig, fragment)
        links += rig.locator(".rig-steps a").evaluate_all("(links) => links.map((link) => link.getAttribute('href'))")
    assert len(links) > 10
    for link in set(links):
        path, _, anchor = link.partition("#")
        assert f'id="{anchor}"' in (site / "rig" / path / "index.html").resolve().read_text(encoding="utf-8") and anchor, link


def test_a_log_is_explained_and_opens_as_a_rig(rig: Page) -> None:
    rig.get_by_role("tab", name="Explain my log").click()
    rig.locator("[name=log]").fill(LOG)
    answer = rig.locator("#log-answer")
    expect(answer).to_contain_text("You have a pool of 289,661 tokens")
    expect(answer).to_contain_text("Settings that fit")
    assert violations(rig) == [] and rig.evaluate(STICKS_OUT) == []
    rig.locator("[name=log]").fill(LOG.replace("Qwen3.8-27B", "Mine"))
    expect(answer.locator(".rig-asks")).to_contain_text("config.json")
    rig.locator("[name=log]").fill(LOG)
    expect(answer.locator(".rig-asks")).to_have_count(0)
    answer.get_by_role("button", name="Open it in Work it out").click()
    expect(rig.locator(".rig-headline")).to_contain_text("289,661 tokens are live at once for everybody")


def test_a_bad_setting_is_said_and_nothing_typed_is_lost_by_it_or_by_a_reload(rig: Page) -> None:
    assert "tokens are live" in at(rig, SMALL)
    rig.locator("[name=config]").fill('{"model_type": "unheard_of"}')
    expect(rig.locator(".rig-problem")).to_contain_text("unheard_of")
    rig.locator("[name=config]").fill("{")
    expect(rig.locator(".rig-problem")).to_contain_text("expected JSON")
    expect(rig.locator("[name=config]")).to_have_attribute("aria-invalid", "true")
    rig.wait_for_timeout(400)
    rig.reload()
    expect(rig.locator("[name=config]")).to_have_value("{")
    expect(rig.locator("[name=available]")).to_have_value("8")
    expect(rig.locator(".rig-problem")).to_contain_text("expected JSON", timeout=SLOW)


def test_a_log_whose_model_is_chosen_from_the_list_is_settled(rig: Page) -> None:
    rig.get_by_role("tab", name="Explain my log").click()
    rig.locator("[name=log]").fill(LOG.replace("Qwen3.8-27B", "Mine"))
    expect(rig.locator("#log-answer .rig-asks")).to_contain_text("does not have")
    rig.locator("[name=log_model]").select_option("qwen3.8-27b")
    expect(rig.locator("#log-answer")).to_contain_text("only these print the pool")
    rig.locator("#log-answer").get_by_role("button", name="Open it in Work it out").click()
    expect(rig.locator("[name=model]")).to_have_value("qwen3.8-27b")
    expect(rig.locator(".rig-headline")).to_contain_text("289,661")
    rig.locator("[name=log_model]").evaluate("(select) => (select.value = '')")


def test_a_log_too_long_to_be_kept_is_said_to_be_and_the_settings_still_are(rig: Page) -> None:
    at(rig, SMALL)
    rig.evaluate("""() => {
      const set = Storage.prototype.setItem
      Storage.prototype.setItem = function (name, value) { if (value.length > 2000) throw new Error("full"); set.call(this, name, value) }
    }""")
    rig.get_by_role("tab", name="Explain my log").click()
    rig.locator("[name=log]").fill(LOG)
    expect(rig.locator("#log-kept")).to_contain_text("too long")
    expect(rig.locator("#log-short")).to_contain_text("289,661")
    rig.locator("#log-short").click()
    expect(rig.locator("#log-answer h2").first).to_be_in_viewport()
    rig.locator("[name=log]").fill("no log at all")
    expect(rig.locator("[name=log]")).to_have_attribute("aria-invalid", "true")
    rig.locator("[name=log]").fill("")
    expect(rig.locator("[name=log]")).not_to_have_attribute("aria-invalid", "true")
    expect(rig.locator("#log-kept")).to_be_empty()
    rig.reload()
    expect(rig.locator("[name=available]")).to_have_value("8")
