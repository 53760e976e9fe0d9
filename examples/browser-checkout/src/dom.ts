/** The little that the page needs to make elements. Text is always text: no markup is ever made from a string. */

/** The element with this id, which index.html has. */
export function byId<E extends HTMLElement>(id: string, type: new () => E): E {
  const found = document.getElementById(id)
  if (!(found instanceof type)) throw new Error(`index.html has no ${type.name} with the id ${id}`)
  return found
}

/** A new element with a class, and with what it holds. */
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

/** Shows a text in an element, or hides the element where there is none. */
export function show(element: HTMLElement, text: string): void {
  element.textContent = text
  element.hidden = text === ''
}

/** Has screen readers say something that is seen elsewhere on the page. */
export function announce(text: string): void {
  byId('announcement', HTMLElement).textContent = text
}
