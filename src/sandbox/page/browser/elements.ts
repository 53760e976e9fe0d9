export function byId(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no ${id}`)
  return found
}

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
  made.append(...children)
  return made
}

/**
 * The content of each part of the page, so that only changes touch it: focus and open details stay
 * as they are.
 */
const drawn = new Map<string, string>()

/** Draws a part only if its content has changed. */
export function draw(id: string, data: unknown, make: (place: HTMLElement) => void): void {
  const text = JSON.stringify(data)
  if (drawn.get(id) === text) return
  drawn.set(id, text)
  make(byId(id))
}
