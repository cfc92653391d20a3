// Python in the reader's browser. It loads Pyodide and the package, then answers calls; every byte comes from this site.

let python

// Counts what is loaded, so that the page can say how far it is. A file that does not come is said at once: Pyodide
// waits for its WebAssembly for ever.
const plainFetch = self.fetch.bind(self)
let loaded = 0
const lost = (error) => {
  postMessage({ loading: true, error: String(error.message || error) })
  return error
}
self.fetch = async (...request) => {
  const response = await plainFetch(...request).catch((error) => { throw lost(error) })
  if (!response.ok) throw lost(new Error(`${response.status} for ${new URL(response.url).pathname}`))
  if (!response.body) return response
  const reader = response.body.getReader()
  const counted = new ReadableStream({
    async pull(stream) {
      const { done, value } = await reader.read().catch((error) => { throw lost(error) })
      if (done) return stream.close()
      loaded += value.byteLength
      postMessage({ loaded })
      stream.enqueue(value)
    },
  })
  return new Response(counted, { status: response.status, headers: response.headers })
}

async function load(folder) {
  const coming = fetch(folder + "aelius_math.zip").then((response) => response.arrayBuffer())
  coming.catch(() => {}) // where it fails it is said below, behind what failed before it
  const { loadPyodide } = await import(folder + "pyodide.mjs")
  const pyodide = await loadPyodide({ indexURL: folder })
  pyodide.unpackArchive(await coming, "zip")
  python = pyodide.runPython(`
import json
from aelius_math import rig

def call(name, arguments):
    return json.dumps(getattr(rig, name)(*json.loads(arguments)))

call`)
}

onmessage = async ({ data }) => {
  try {
    if (data.folder) {
      await load(data.folder)
      postMessage({ ready: true })
    } else postMessage({ id: data.id, answer: JSON.parse(python(data.name, JSON.stringify(data.arguments))) })
  } catch (error) {
    postMessage({ id: data.id, error: String(error.message || error).trim().split("\n").pop(), loading: Boolean(data.folder) })
  }
}
