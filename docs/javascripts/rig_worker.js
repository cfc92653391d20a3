// Python in the reader's browser. It loads Pyodide and the package, then answers calls; every byte comes from this site.

let python

// Counts what is loaded, so that the page can say how far it is.
const plainFetch = self.fetch.bind(self)
let loaded = 0
self.fetch = async (...request) => {
  const response = await plainFetch(...request)
  if (!response.ok) throw new Error(`${response.status} for ${new URL(response.url).pathname}`)
  if (!response.body) return response
  const counter = new TransformStream({
    transform(chunk, stream) {
      loaded += chunk.byteLength
      postMessage({ loaded })
      stream.enqueue(chunk)
    },
  })
  return new Response(response.body.pipeThrough(counter), { status: response.status, headers: response.headers })
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
