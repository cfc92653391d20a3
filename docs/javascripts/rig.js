// The page "Your rig": passes what is typed to Python, and draws what Python answers. It computes no number itself.
// One file, as it is one request: the form, the worker, the drawing of an answer, the address of the page.

const data = JSON.parse(document.getElementById("rig-data").textContent)
const $ = (selector, root = document) => root.querySelector(selector)
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)]
const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields)
  element.append(...children.filter((child) => child !== null && child !== undefined))
  return element
}
const form = $("#rig-form"), logForm = $("#log-form")
const folder = new URL(data.folder, location.href).href
const switches = { k: "1024", unit: "GiB" }
let cards = [{}]

// --- The form's lists, and fields that only one engine or one kind of memory has.
for (const select of $$("select[data-list]")) {
  select.append(make("option", { value: "", textContent: select.dataset.empty }))
  for (const [value, text] of data.lists[select.dataset.list]) select.append(make("option", { value, textContent: text }))
}
for (const group of $$(".rig-switch")) {
  const name = group.dataset.switch
  group.append(make("span", { textContent: name === "k" ? "K is" : "in", ariaHidden: "true" }))
  for (const [value, text] of data.lists[name]) {
    const input = make("input", { type: "radio", name: `switch-${name}`, value, checked: switches[name] === value })
    input.addEventListener("change", () => {
      switches[name] = value
      changed()
    })
    group.append(make("label", {}, input, make("span", { textContent: text })))
  }
}
form.count.value = "1"

function drawCards() {
  const box = $("#rig-cards")
  const more = cards.length !== box.children.length
  if (!more) return
  box.replaceChildren(
    ...cards.map((card, index) => {
      const field = (name, text, input) => {
        input.value = card[name] || ""
        input.addEventListener("input", () => {
          card[name] = input.value
          if (name === "card") about()
        })
        return make("label", {}, `${text} `, input)
      }
      const list = make("select", {}, make("option", { value: "", textContent: "another, its size typed" }))
      for (const [value, text] of data.lists.card) list.append(make("option", { value, textContent: text }))
      const source = make("small", { className: "rig-source" })
      const about = () => (source.textContent = data.sources[card.card] || "")
      const row = make(
        "fieldset", { className: "rig-card" }, make("legend", { textContent: `Card ${index + 1}` }),
        field("card", "Card", list), field("visible", "Memory CUDA sees, if not the list's", make("input")),
        field("tenant", "What else lives on it", make("input")), source,
      )
      about()
      return row
    }),
  )
}
form.count.addEventListener("input", () => {
  const wanted = Math.min(16, Math.max(1, Number.parseInt(form.count.value, 10) || 1))
  while (cards.length < wanted) cards.push({ card: cards[0].card, visible: cards[0].visible })
  cards.length = wanted
  drawCards()
})

function arrange() {
  for (const part of $$("[data-engine]", form)) part.hidden = part.dataset.engine !== form.engine.value
  for (const part of $$("[data-memory]", form)) part.hidden = part.dataset.memory !== form.memory.value
  drawCards()
}

// --- Settings: from the form and into it; in the fragment of the address, and kept for a reload.
const names = [...new Set([...form.elements].map((element) => element.name).filter((name) => name && name !== "count"))]

function settings() {
  const found = { ...switches }
  for (const name of names) if (form[name]?.value) found[name] = form[name].value
  if (found.memory === "cards" && found.engine === "vllm") found.cards = cards
  return found
}

function fill(found) {
  for (const name of names) if (form[name] && form[name].type !== "file") form[name].value = found[name] ?? (form[name].options?.[0]?.value || "")
  for (const name of ["engine", "memory"]) if (!form[name].value) form[name].selectedIndex = 0
  for (const name of ["k", "unit"])
    for (const input of $$(`[name="switch-${name}"]`)) if (input.value === found[name]) [input.checked, switches[name]] = [true, input.value]
  cards = Array.isArray(found.cards) && found.cards.length ? found.cards.map((card) => ({ ...card })) : [{}]
  form.count.value = String(cards.length)
  $("#rig-cards").replaceChildren()
  arrange()
}

function fragment() {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(settings())) {
    if (name === "cards") parameters.set(name, JSON.stringify(value))
    else if (!(name === "k" && value === "1024") && !(name === "unit" && value === "GiB")) parameters.set(name, name === "config" ? squeezed(value) : value)
  }
  if (view() === "log") parameters.set("view", "log")
  return String(parameters)
}
const squeezed = (config) => {
  try {
    return JSON.stringify(JSON.parse(config))
  } catch {
    return config // not JSON yet: kept as it was typed
  }
}
function fromFragment() {
  const text = location.hash.slice(1)
  if (!text.includes("=")) return null
  const found = Object.fromEntries(new URLSearchParams(text))
  try {
    if (found.cards) found.cards = JSON.parse(found.cards)
  } catch {
    delete found.cards
  }
  return found
}

let keeping = 0
function keep() {
  clearTimeout(keeping)
  keeping = setTimeout(() => {
    const text = fragment()
    history.replaceState(null, "", text === "engine=vllm&memory=available" ? location.pathname + location.search : `#${text}`)
    try {
      sessionStorage.setItem("rig", JSON.stringify({ ...settings(), cards, log: logForm.log.value, log_config: logForm.log_config.value }))
    } catch {} // no room or no storage: the address still holds the settings
  }, 250)
}

// --- Python, in a worker: loaded when somebody asks or types.
let worker = null, ready = false, serial = 0
const waiting = new Map()

function start() {
  if (worker) return
  $("#rig-failed").hidden = true
  if (typeof WebAssembly !== "object" || typeof Worker !== "function") return failed("This browser does not run WebAssembly, which Python needs here.")
  $(".rig-start").hidden = true
  $("#rig-progress").hidden = false
  $("#rig-bar").max = data.bytes
  progress(0)
  say("Python is loading.")
  try {
    worker = new Worker(new URL(data.worker, location.href), { type: "module" })
  } catch (error) {
    return failed(`Python did not load: ${error.message}.`)
  }
  worker.onmessage = ({ data: message }) => {
    if (message.loaded !== undefined) progress(message.loaded)
    else if (message.ready) {
      ready = true
      $("#rig-progress").hidden = true
      say("Python is there.")
      run()
    } else if (message.loading) failed(`Python did not load: ${message.error}.`)
    else {
      const resolve = waiting.get(message.id)
      waiting.delete(message.id)
      resolve?.(message.error ? { failure: message.error } : message.answer)
    }
  }
  worker.onerror = (event) => {
    event.preventDefault()
    if (!ready) failed("Python did not load: its files could not be read.")
  }
  worker.postMessage({ folder })
}

function stop() {
  worker?.terminate()
  worker = null
  ready = false
  for (const resolve of waiting.values()) resolve(null)
  waiting.clear()
  $("#rig-progress").hidden = true
  $(".rig-start").hidden = false
}

const megabytes = (size) => (size / 1e6).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })
function progress(size) {
  $("#rig-bar").value = size
  $("#rig-bytes").textContent =
    size >= data.bytes ? "All loaded; Python starts" : `${megabytes(size)} of ${megabytes(data.bytes)} MB`
}
$("#rig-size").textContent = `The first key, or Start, loads Python: ${megabytes(data.bytes)} MB.`

function failed(text) {
  stop()
  const box = $("#rig-failed")
  const again = make("button", { type: "button", className: "rig-plain", textContent: "Try again" })
  again.addEventListener("click", start)
  box.replaceChildren(make("p", { textContent: `${text} Nothing that was typed is lost. The command line below gives the same numbers.` }), again)
  box.append(" ", make("a", { href: "#the-same-on-a-command-line", textContent: "The command line" }))
  box.hidden = false
}

const ask = (name, ...values) =>
  new Promise((resolve) => {
    waiting.set(++serial, resolve)
    worker.postMessage({ id: serial, name, arguments: values })
  })

// --- Asking and drawing. The first answer leaves out what takes longer, which follows.
let turn = 0, timer = 0
function changed() {
  turn++ // what is still being worked out is no longer asked for
  if (view() === "work") $("#rig-answer").setAttribute("aria-busy", "true")
  arrange()
  keep()
  clearTimeout(timer)
  timer = setTimeout(() => (ready ? run() : start()), 8)
}

async function run() {
  const mine = ++turn
  if (view() === "log") return runLog(mine)
  const given = settings()
  const first = await ask("work_out", given, false)
  if (mine !== turn || !first) return
  drawRig(first, false)
  const whole = await ask("work_out", given, true)
  if (mine !== turn || !whole) return
  drawRig(whole, true)
  $("#rig-answer").removeAttribute("aria-busy")
}

async function runLog(mine) {
  const log = logForm.log.value, box = $("#log-answer")
  if (!log.trim()) return box.replaceChildren()
  box.setAttribute("aria-busy", "true")
  const found = await ask("explain_log", log, logForm.log_config.value || null, Number(switches.k), switches.unit)
  box.removeAttribute("aria-busy")
  if (mine !== turn || !found) return
  if (found.failure) return box.replaceChildren(broken(found.failure))
  mark(logForm, found)
  box.replaceChildren(...messages(found))
  for (const boot of found.boots) {
    const open = make("button", { type: "button", className: "rig-button", textContent: "Open it in Work it out" })
    open.addEventListener("click", () => {
      fill({ ...switches, memory: "available", ...boot.settings })
      select("work", true)
      changed()
    })
    box.append(make("h2", { textContent: boot.title }), ...boot.headline.map((text) => make("p", { textContent: text })))
    box.append(...boot.notes.map((text) => make("p", { className: "rig-help", textContent: text })))
    box.append(...boot.pictures.map(picture), ...boot.sections.map(section), make("p", {}, open))
  }
  box.append(copies(found))
  say(found.boots[0]?.headline[0] || found.problems[0]?.text || "")
}

const broken = (text) => make("p", { className: "rig-problem", textContent: `Something here is broken, and not your doing: ${text}` })

function drawRig(found, whole) {
  const box = $("#rig-answer")
  if (found.failure) return box.replaceChildren(broken(found.failure))
  mark(form, found)
  for (const label of $$("[data-offered]", form)) { // what few rigs have is offered to those
    const field = $("select", label)
    label.hidden = !field.value && !found.offered.includes(field.name)
  }
  const choices = whole ? null : $("[data-rest]", box)
  const answered = found.numbers.model && (found.sections.length || found.headline.length)
  const parts = messages(found, !answered)
  if (answered) {
    parts.push(make("h2", { textContent: found.title }))
    parts.push(...found.headline.map((text, index) => make("p", { className: index ? "" : "rig-headline", textContent: text })))
    parts.push(...taken(found), ...found.pictures.map(picture))
    for (const one of found.sections) {
      if (choices && one.kind === "steps") parts.push(choices)
      parts.push(section(one))
    }
    parts.push(copies(found))
  }
  const open = new Set($$("details[open]", box).map((one) => one.dataset.title))
  box.replaceChildren(...parts)
  inShort(answered && (found.headline[1] || found.headline[0]), [...found.problems, ...found.asks].map((one) => one.text)[0])
  for (const one of $$("details", box)) one.open = open.has(one.dataset.title)
  if (whole) say(found.headline.join(" ") || [...found.problems, ...found.asks].map((one) => one.text).join(" "))
  window.dispatchEvent(new Event("resize")) // what scrolls sideways can be reached by keyboard
}

// The answer in one line, at the foot of the screen as long as the form hides it.
function inShort(answer, missing) {
  const text = answer || missing
  $("#rig-short").hidden = !text
  document.documentElement.classList.toggle("has-short", Boolean(text))
  $("#rig-short span").textContent = text || ""
  $("#rig-short b").textContent = answer ? "To the answer" : "What is missing"
}

$("#rig-short").addEventListener("click", (event) => {
  event.preventDefault() // the address keeps the settings
  $("#rig-answer").scrollIntoView()
})

const list = (title, name, texts) =>
  texts.length ? [make("div", { className: name }, make("b", { textContent: title }), make("ul", {}, ...texts))] : []
const taken = (found) => list("Taken, as you did not say", "rig-taken", found.taken.map((text) => make("li", { textContent: text })))

function messages(found, takenToo = true) {
  const line = (one) => {
    const field = one.field && (form[one.field] || logForm[one.field === "config" ? "log_config" : one.field])
    if (!field?.focus) return make("li", { textContent: one.text })
    const button = make("button", { type: "button", className: "rig-link", textContent: one.text })
    button.addEventListener("click", () => field.focus())
    return make("li", {}, button)
  }
  return [
    ...list("That does not work", "rig-problem", found.problems.map(line)),
    ...list("Still needed", "rig-asks", found.asks.map(line)),
    ...(takenToo ? taken(found) : []),
  ]
}

function mark(where, found) {
  for (const field of $$("[aria-invalid]", where)) field.removeAttribute("aria-invalid")
  for (const { field } of found.problems) {
    const input = where[field === "config" && where === logForm ? "log_config" : field]
    if (input?.setAttribute) input.setAttribute("aria-invalid", "true")
  }
}

function section(one) {
  const title = make("h3", { textContent: one.title })
  const text = one.text ? make("p", { className: "rig-help", textContent: one.text }) : null
  if (one.kind === "figures") {
    const rows = one.rows.map(([label, value, note]) =>
      make("div", {}, make("dt", { textContent: label }), make("dd", {}, make("b", { textContent: value }), note ? make("small", { textContent: note }) : null)),
    )
    return make("section", {}, title, make("dl", { className: "rig-figures" }, ...rows))
  }
  if (one.kind === "table") {
    if (!one.rows.length) return make("section", {}, title, text)
    const beside = one.head.at(-1) === "to know" ? -1 : undefined // said below its row, where a phone shows it too
    const head = make("tr", {}, ...one.head.slice(0, beside).map((cell) => make("th", { scope: "col", textContent: cell })))
    const rows = one.rows.flatMap((cells) => {
      const row = make("tr", {}, ...cells.slice(0, beside).map((cell, index) => make(index ? "td" : "th", { textContent: cell, ...(index ? {} : { scope: "row" }) })))
      if (!beside || !cells.at(-1)) return [row]
      row.className = "has-more"
      return [row, make("tr", {}, make("td", { colSpan: cells.length - 1, className: "more", textContent: cells.at(-1) }))]
    })
    const table = make("table", { className: "rig-table" }, make("thead", {}, head), make("tbody", {}, ...rows))
    const scrolls = make("div", { className: "scrolls" }, table)
    const whole = make("section", {}, title, text, scrolls)
    scrolls.setAttribute("role", "region")
    scrolls.setAttribute("aria-label", one.title)
    if (one.title.startsWith("What each")) whole.dataset.rest = ""
    return whole
  }
  if (one.kind === "steps") {
    const rows = one.rows.map((row) => {
      const note = data.notes[row.note]
      const formula = [row.formula, row.numbers].filter(Boolean).join(" = ")
      return make(
        "li", {}, make("p", {}, make("code", { textContent: row.symbol }), ` ${row.name}: `, make("b", { textContent: row.value })),
        make("p", { className: "rig-how" }, make("code", { textContent: formula })),
        make("p", { className: "rig-how" }, `${row.source}. `, note ? make("a", { href: note + (row.anchor && `#${row.anchor}`), textContent: row.asks }) : null),
      )
    })
    const details = make("details", { className: "rig-steps" }, make("summary", { textContent: one.title }), make("ol", {}, ...rows))
    details.dataset.title = one.title
    return details
  }
  return make("section", {}, title, make("ul", {}, ...one.rows.map((row) => make("li", { textContent: row }))))
}

// --- A bar of memory: widths are the shares that Python gave.
const colours = { weights: "--plot-1", kv: "--plot-3", state: "--plot-2", others: "--plot-5", draft: "--plot-4", extra: "--plot-5", tenant: "--plot-6", free: "" }
function picture(one) {
  const space = "http://www.w3.org/2000/svg"
  const svg = document.createElementNS(space, "svg")
  const set = (element, fields) => {
    for (const [name, value] of Object.entries(fields)) element.setAttribute(name, value)
    return element
  }
  set(svg, { viewBox: "0 0 1000 46", preserveAspectRatio: "none", role: "img", "aria-label": one.alt })
  let at = 0
  for (const part of one.parts) {
    const bar = set(document.createElementNS(space, "rect"), { x: at * 1000, y: 0, width: Math.max(part.share * 1000, 1), height: 46 })
    const colour = colours[part.kind]
    bar.style.fill = colour ? `var(${colour})` : "var(--line)"
    svg.append(bar)
    at += part.share
  }
  const key = one.parts.map((part) => {
    const dot = make("i")
    dot.style.background = colours[part.kind] ? `var(${colours[part.kind]})` : "var(--line)"
    return make("li", {}, dot, `${part.what} `, make("b", { textContent: part.text }))
  })
  return make("figure", { className: "rig-picture" }, make("figcaption", {}, `${one.title}: ${one.total}`), svg, make("ul", {}, ...key))
}

function copies(found) {
  const texts = [
    ["Copy as command line", found.code?.command], ["Copy as Python", found.code?.python], ["Copy as Markdown", found.markdown],
    ["Copy as JSON", found.numbers && JSON.stringify(found.numbers, null, 2)], ["Copy the link", view() === "log" ? "" : () => new URL(`#${fragment()}`, location.href).href], // whatever anchor the address holds
  ]
  const box = make("div", { className: "rig-copies" })
  for (const [label, text] of texts) {
    if (!text) continue
    const button = make("button", { type: "button", className: "rig-plain", textContent: label })
    button.addEventListener("click", async () => {
      const copied = typeof text === "function" ? text() : text
      try {
        await navigator.clipboard.writeText(copied)
        say("Copied.")
        button.textContent = "Copied"
      } catch {
        $("textarea.rig-copy", box)?.remove()
        const area = make("textarea", { className: "rig-copy", value: copied, readOnly: true, rows: 6, ariaLabel: label })
        box.append(area)
        area.select()
      }
      setTimeout(() => (button.textContent = label), 1500)
    })
    box.append(button)
  }
  if (found.code?.command) box.append(make("pre", {}, make("code", { textContent: found.code.command })))
  return box
}

const say = (text) => ($("#rig-said").textContent = text)

// --- Tabs, dropping, typing.
const view = () => ($("#tab-log").getAttribute("aria-selected") === "true" ? "log" : "work")
function select(name, focus = false) {
  for (const one of ["work", "log"]) {
    const tab = $(`#tab-${one}`)
    tab.setAttribute("aria-selected", String(one === name))
    tab.tabIndex = one === name ? 0 : -1
    $(`#panel-${one}`).hidden = one !== name
    if (focus && one === name) tab.focus()
  }
}
for (const name of ["work", "log"]) {
  const tab = $(`#tab-${name}`)
  tab.addEventListener("click", () => {
    select(name)
    keep()
    if (ready) run()
  })
  tab.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return
    select(name === "work" ? "log" : "work", true)
    keep()
    if (ready) run()
  })
}
for (const area of $$("[data-drop]")) {
  area.addEventListener("dragover", (event) => event.preventDefault())
  area.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0]
    if (!file) return
    event.preventDefault()
    area.value = await file.text()
    changed()
  })
}
for (const input of $$("input[data-into]"))
  input.addEventListener("change", async () => {
    if (!input.files[0]) return
    input.closest("form")[input.dataset.into].value = await input.files[0].text()
    changed()
  })
for (const one of [form, logForm]) {
  one.addEventListener("input", (event) => event.target.type !== "file" && changed())
  one.addEventListener("submit", (event) => event.preventDefault())
}
$("#rig-load").addEventListener("click", start)
$("#rig-cancel").addEventListener("click", () => {
  stop()
  say("Cancelled.")
})
$("#rig-article").addEventListener("click", () => {
  fill({ ...switches, ...data.article })
  changed()
})

// --- What was there before: the address first, else what was kept.
let kept = {}
try {
  kept = JSON.parse(sessionStorage.getItem("rig") || "{}")
} catch {}
const shared = fromFragment()
fill(shared || kept)
logForm.log.value = kept.log || ""
logForm.log_config.value = kept.log_config || ""
if (shared?.view === "log") select("log")
if (shared) start()
addEventListener("hashchange", () => {
  const found = fromFragment()
  if (!found) return
  fill(found)
  select(found.view === "log" ? "log" : "work")
  changed()
})
