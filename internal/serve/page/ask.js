// Requests to the server that sent this page.

// Refused is an error that the server has put into words, with the field of the form that it is about.
export class Refused extends Error {
  constructor(text, field) {
    super(text);
    this.field = field;
  }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused("The server does not answer: spinsim serve has ended. Start it again, and open the address that it prints.");
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    said = { error: text };
  }
  throw new Refused(said.error, said.field);
}

// unpacked is the text of a file that is packed, or null if it is longer than a page can show.
export async function unpacked(path, most) {
  const reader = (await ask(path)).body.pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream()).getReader();
  const parts = [];
  for (let length = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return parts.join("");
    if ((length += value.length) > most) {
      await reader.cancel();
      return null;
    }
    parts.push(value);
  }
}

export const json = async (path) => (await ask(path)).json();
export const text = async (path) => (await ask(path)).text();
export const post = async (path, body) => (await ask(path, { method: "POST", body })).json();
export const output = (run, name) => `/api/runs/${run.id}/${name}`;

// element makes an element with properties, attributes (with a - or of aria) and children.
export function element(name, properties = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in e && !key.includes("-")) e[key] = value;
    else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}
