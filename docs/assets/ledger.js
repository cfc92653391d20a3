// Narrows the ledger's tables by words too, counts what is left, and keeps the choice in the page's address: a link to
// ledger/?verdict=does-not-hold shows these. The selects work by styles alone, and without scripts all rows are there.
const form = document.querySelector(".ledger-filter")
const rows = [...document.querySelectorAll("table.ledger tbody tr")].map((row) => [row, row.textContent.toLowerCase()])
const sections = [...document.querySelectorAll("table.ledger")].map((table) => {
  const frame = table.closest(".md-typeset__scrollwrap") || table // Material wraps tables, before or after this
  return [table, frame.previousElementSibling]
})

function narrow() {
  const chosen = [...new FormData(form)].filter(([, value]) => value.trim())
  const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean)
  const others = chosen.filter(([name]) => name !== "q")
  let shown = 0
  for (const [row, text] of rows) {
    row.hidden = !words.every((word) => text.includes(word)) || !others.every(([name, value]) => row.dataset[name] === value)
    shown += !row.hidden
  }
  for (const [table, heading] of sections) {
    table.hidden = !table.querySelector("tbody tr:not([hidden])")
    if (heading?.matches("h2")) heading.hidden = table.hidden
  }
  form.querySelector("output").textContent = chosen.length ? `${shown} of ${rows.length}` : ""
  return new URLSearchParams(chosen).toString()
}

form.addEventListener("submit", (event) => event.preventDefault())
form.addEventListener("input", () => {
  const query = narrow()
  history.replaceState(null, "", location.pathname + (query && `?${query}`))
})
for (const [name, value] of new URLSearchParams(location.search)) if (form.elements[name]) form.elements[name].value = value
if (narrow() && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView()
