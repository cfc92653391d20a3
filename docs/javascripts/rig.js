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
const most = Number(form.count.max)
let cards = [{}], count = 1 // what was typed for a card outlives a smaller count

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
      if (name === "unit") pin(switches.unit)
      switches[name] = value
      changed()
    })
    group.append(make("label", {}, input, make("span", { textContent: text })))
  }
}
// A bare size keeps the unit in which it was typed.
function pin(unit) {
  const pinned = (text) => text.replace(/^\s*[\d.,]*\d\s*$/, (number) => `${number.trim()} ${unit}`)
  for (const field of $$("[data-size]", form)) field.value = field.value.split(";").map(pinned).join(";")
  for (const card of cards) for (const name of ["visible", "tenant"]) if (card[name]) card[name] = pinned(card[name])
  $("#rig-cards").replaceChildren()
}

function drawCards() {
  const box = $("#rig-cards")
  if (count === box.children.length) return
  box.replaceChildren(
    ...cards.slice(0, count).map((card, index) => {
      const field = (name, text, input) => {
        input.value = card[name] || ""
        input.dataset.field = name
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
      const size = (text) => make("input", { placeholder: text })
      const row = make(
        "fieldset", { className: "rig-card" }, make("legend", { textContent: `Card ${index + 1}` }),
        field("card", "Card", list), field("visible", "Memory CUDA sees, if not the list's", size(switches.unit)),
        field("tenant", data.labels.tenant, size(switches.unit)), source,
      )
      about()
      return row
    }),
  )
}
function countTo(number) {
  count = number
  while (cards.length < count) cards.push({ card: cards[0].card, visible: cards[0].visible })
  drawCards()
}
const counted = () => (/^\d{1,2}$/.test(form.count.value.trim()) ? Number(form.count.value) : 0)
form.count.addEventListener("input", () => {
  const wanted = counted()
  if (wanted >= 1 && wanted <= most) countTo(wanted)
})
form.memory.addEventListener("input", () => {
  const wanted = Number(form.tensor_parallel_size.value)
  if (count > 1 || Object.values(cards[0]).some(Boolean) || !(wanted > 1 && wanted <= most)) return
  form.count.value = String(wanted)
  countTo(wanted)
})

function arrange() {
  for (const part of $$("[data-engine]", form)) part.hidden = part.dataset.engine !== form.engine.value
  for (const part of $$("[data-memory]", form)) part.hidden = part.dataset.memory !== form.memory.value
  for (const field of $$("[data-size]", form)) field.placeholder = switches.unit
  drawCards()
}

// --- Settings: from the form and into it; in the fragment of the address, and kept for a reload.
const names = [...new Set([...form.elements].map((element) => element.name).filter((name) => name && name !== "count"))]

function settings() {
  const found = { ...switches }
  for (const name of names) if (form[name]?.value) found[name] = form[name].value
  const shown = cards.slice(0, count)
  if (found.memory === "cards" || shown.some((card) => Object.values(card).some(Boolean))) found.cards = shown
  if (counted() !== count) found.count = form.count.value || "nothing" // Python says what is wrong with it
  return found
}

function fill(found) {
  for (const name of names) {
    const field = form[name], value = found[name] ?? (field.options?.[0]?.value || "")
    if (!field || field.type === "file") continue
    if (field.options && value && ![...field.options].some((option) => option.value === value)) {
      field.append(make("option", { value, textContent: value })) // what the list does not have is kept, and judged
    }
    field.value = value
  }
  for (const name of ["engine", "memory"]) if (!$$("option", form[name]).slice(0, 2).some((option) => option.value === form[name].value)) form[name].selectedIndex = 0
  for (const [name, usual] of Object.entries({ k: "1024", unit: "GiB" })) {
    const inputs = $$(`[name="switch-${name}"]`), wanted = inputs.some((input) => input.value === found[name]) ? found[name] : usual
    switches[name] = wanted
    for (const input of inputs) input.checked = input.value === wanted
  }
  cards = Array.isArray(found.cards) && found.cards.length ? found.cards.slice(0, most).map((card) => ({ ...card })) : [{}]
  count = Math.min(cards.length, Number(found.shown) || cards.length)
  form.count.value = String(count)
  $("#rig-cards").replaceChildren()
  arrange()
}

function fragment() {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(settings())) {
    if (name === "cards") parameters.set(name, JSON.stringify(value))
    else if (name !== "count" && !(name === "k" && value === "1024") && !(name === "unit" && value === "GiB")) parameters.set(name, name === "config" ? squeezed(value) : value)
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
  keeping = setTimeout(write, 250)
}
function write() {
  clearTimeout(keeping)
  keeping = 0
  const text = fragment()
  history.replaceState(null, "", text === "engine=vllm&memory=available" ? location.pathname + location.search : `#${text}`)
  const rig = { ...settings(), cards, shown: count, hash: location.hash }
  const store = (value) => {
    try {
      sessionStorage.setItem("rig", JSON.stringify(value))
      return true
    } catch {
      return false // no room or no storage: the address still holds the settings
    }
  }
  const whole = store({ ...rig, log: logForm.log.value, log_config: logForm.log_config.value, log_model: logForm.log_model.value })
  if (!whole) store(rig)
  $("#log-kept").textContent = whole || !logForm.log.value ? "" : "It is too long for this browser to keep: a reload loses it."
}
addEventListener("pagehide", () => keeping && write())

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
  for (const box of $$(".rig-answer")) box.removeAttribute("aria-busy")
}

const megabytes = (size) => (size / 1e6).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })
function progress(size) {
  $("#rig-bar").value = size
  $("#rig-bytes").textContent =
    megabytes(size) === megabytes(data.bytes) ? "All loaded; Python starts" : `${megabytes(size)} of ${megabytes(data.bytes)} MB`
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
  if (!log.trim()) {
    mark(logForm, { problems: [] })
    inShort("log", "")
    return box.replaceChildren()
  }
  box.setAttribute("aria-busy", "true")
  const found = await ask("explain_log", log, logForm.log_config.value || logForm.log_model.value || null, Number(switches.k), switches.unit)
  box.removeAttribute("aria-busy")
  if (mine !== turn || !found) return
  if (found.failure) return box.replaceChildren(broken(found.failure))
  mark(logForm, found)
  inShort("log", found.boots[0]?.headline[0], found)
  box.replaceChildren(...messages(found))
  for (const boot of found.boots) {
    const open = make("button", { type: "button", className: "rig-button", textContent: "Open it in Work it out" })
    open.addEventListener("click", () => {
      replaced("The log's boot stands here now.")
      fill({ ...switches, memory: "available", ...boot.settings })
      select("work", true)
      changed()
    })
    box.append(make("h2", { textContent: boot.title }), ...boot.headline.map((text) => make("p", { textContent: text })))
    box.append(...boot.notes.map((text) => make("p", { className: "rig-help", textContent: text })))
    box.append(...boot.pictures.map(picture), ...boot.sections.map(section), make("p", {}, open))
  }
  box.append(copies(found))
  tell(found.boots[0]?.headline[0] || found.problems[0]?.text || "")
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
  inShort("rig", answered && (found.short || found.headline[0]), found)
  for (const one of $$("details", box)) one.open = open.has(one.dataset.title)
  if (whole) tell(found.headline.join(" ") || [...found.problems, ...found.asks].map((one) => one.text).join(" "))
  window.dispatchEvent(new Event("resize")) // what scrolls sideways can be reached by keyboard
}

// The answer in one line, at the foot of the screen as long as the form hides it.
function inShort(which, answer, found = { problems: [], asks: [] }) {
  const bar = $(`#${which}-short`), wrong = found.problems[0]?.text
  const text = answer || wrong || found.asks[0]?.text
  bar.hidden = !text
  document.documentElement.classList.toggle("has-short", Boolean(text))
  $("span", bar).textContent = text?.length > 140 ? `${text.slice(0, 139)}…` : text || ""
  const answers = wrong ? "To the answer, and what does not work" : "To the answer"
  $("b", bar).textContent = answer ? answers : wrong ? "What does not work" : "What is missing"
}

for (const bar of $$(".rig-short"))
  bar.addEventListener("click", (event) => {
    event.preventDefault() // the address keeps the settings
    $(bar.getAttribute("href")).scrollIntoView()
  })

// What is put in the place of what was typed can be taken back.
let before = null
function replaced(text) {
  const now = { ...settings(), cards, shown: count }
  const typed = cards.some((card) => Object.values(card).some(Boolean)) ||
    names.some((name) => (form[name].options ? !["engine", "memory"].includes(name) && form[name].selectedIndex > 0 : form[name].value))
  before = typed ? structuredClone(now) : null
  $("#rig-undo").hidden = !before
  $("#rig-undo span").textContent = text
}
$("#rig-undo button").addEventListener("click", () => {
  fill(before)
  $("#rig-undo").hidden = true
  form.engine.focus()
  changed()
})

const list = (title, name, texts) =>
  texts.length ? [make("div", { className: name }, make("b", { textContent: title }), make("ul", {}, ...texts))] : []
const taken = (found) => list("Taken, as you did not say", "rig-taken", found.taken.map((text) => make("li", { textContent: text })))

// The field that a message is about; a card's own has the card's number behind its name.
function fieldOf(name, where = form) {
  const [plain, number] = name.split(" ")
  if (number) return $(`.rig-card:nth-child(${Number(number)}) [data-field="${plain}"]`)
  if (where === form && form[name]?.focus) return form[name]
  return logForm[name === "config" ? "log_config" : name]
}

function messages(found, takenToo = true) {
  const line = (one) => {
    const field = one.field && fieldOf(one.field, view() === "log" ? logForm : form)
    const at = one.text.indexOf(": ")
    if (!field?.focus || at < 0) return make("li", { textContent: one.text })
    const button = make("button", { type: "button", className: "rig-link", textContent: one.text.slice(0, at) })
    button.addEventListener("click", () => field.focus())
    return make("li", {}, button, one.text.slice(at))
  }
  return [
    ...list("That does not work", "rig-problem", found.problems.map(line)),
    ...list("Still needed", "rig-asks", found.asks.map(line)),
    ...(takenToo ? taken(found) : []),
  ]
}

function mark(where, found) {
  for (const field of $$("[aria-invalid]", where)) field.removeAttribute("aria-invalid")
  for (const { field } of found.problems) fieldOf(field, where)?.setAttribute?.("aria-invalid", "true")
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
const colours = {
  weights: "var(--plot-1)", kv: "var(--plot-3)", state: "var(--plot-2)", others: "color-mix(in srgb, var(--plot-3) 45%, var(--paper))",
  draft: "var(--plot-4)", extra: "var(--plot-5)", tenant: "var(--plot-6)", free: "var(--line)", margin: "color-mix(in srgb, var(--line) 50%, var(--plot-6))",
}
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
    bar.style.fill = part.kind === "lacking" ? "var(--wash)" : colours[part.kind]
    if (part.kind === "lacking") Object.assign(bar.style, { stroke: "var(--plot-2)", strokeWidth: "2px", strokeDasharray: "6 4", vectorEffect: "non-scaling-stroke" })
    svg.append(bar)
    at += part.share
  }
  if (one.limit) svg.append(set(document.createElementNS(space, "rect"), { class: "rig-limit", x: one.limit * 1000 - 3, y: 0, width: 6, height: 46 }))
  const key = one.parts.map((part) => {
    const dot = make("i")
    if (part.kind === "lacking") dot.style.border = "2px dashed var(--plot-2)"
    else dot.style.background = colours[part.kind]
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
  if (found.code?.command) box.append(make("p", { className: "rig-help", textContent: "To be run in a copy of the project:" }))
  if (found.code?.command) box.append(make("pre", {}, make("code", { textContent: found.code.command })))
  return box
}

const say = (text) => {
  clearTimeout(telling)
  $("#rig-said").textContent = text
}
// A result is told once the typing has ended, and not while a value is half there.
let telling = 0
function tell(text) {
  clearTimeout(telling)
  telling = setTimeout(() => say(text), 1000)
}

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
  $("#rig-load").focus()
  say("Cancelled.")
})
$("#rig-article").addEventListener("click", () => {
  replaced("The article's machine stands here now.")
  fill({ ...switches, ...data.article })
  changed()
})

// --- What was there before: the address first, else what was kept.
let kept = {}
try {
  kept = JSON.parse(sessionStorage.getItem("rig") || "{}")
} catch {}
const shared = fromFragment()
history.scrollRestoration = "manual" // the answer, drawn later, would be taken for the place
const again = performance.getEntriesByType("navigation")[0]?.type === "reload" && kept.engine
fill(shared && !again && kept.hash !== location.hash ? shared : kept)
logForm.log.value = kept.log || ""
logForm.log_config.value = kept.log_config || ""
logForm.log_model.value = kept.log_model || ""
if (shared?.view === "log") select("log")
if (shared) start()
addEventListener("hashchange", () => {
  const found = fromFragment()
  if (!found) return
  fill(found)
  select(found.view === "log" ? "log" : "work")
  changed()
})
