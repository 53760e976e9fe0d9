/** Helpers to make elements. They never parse a string as markup. */

/** The element with this id, which index.html has. */
export function byId<E extends HTMLElement>(id: string, type: new () => E): E {
  const found = document.getElementById(id)
  if (!(found instanceof type)) throw new Error(`index.html has no ${type.name} with the id ${id}`)
  return found
}

/** Makes an element with a class and children. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  className: string,
  ...content: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  if (className !== '') element.className = className
  element.append(...content)
  return element
}

/** Shows a string in an element, or hides the element if the string is empty. */
export function show(element: HTMLElement, text: string): void {
  element.textContent = text
  element.hidden = text === ''
}

/** Makes screen readers announce a change that is visible elsewhere on the page. */
export function announce(text: string): void {
  byId('announcement', HTMLElement).textContent = text
}
