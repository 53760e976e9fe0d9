interface Drawn {
  readonly item: unknown
  readonly node: Element
}

type Key = string | number

const shown = new WeakMap<Element, ReadonlyMap<Key, Drawn>>()

/**
 * Changes only the parts of `place` that differ, so that focus, selections and open details stay as
 * they are. An element that is drawn again keeps its first listeners, so a listener may use only
 * the item's key.
 */
export function drawEach<Item>(
  place: Element,
  items: readonly Item[],
  keyOf: (item: Item) => Key,
  make: (item: Item) => Element,
): void {
  const before = shown.get(place)
  const now = new Map<Key, Drawn>()
  for (const item of items) {
    const key = keyOf(item)
    const known = before?.get(key)
    if (known !== undefined && !isSame(known.item, item)) patch(known.node, make(item))
    now.set(key, { item, node: known?.node ?? make(item) })
  }
  for (const [key, { node }] of before ?? []) if (!now.has(key)) node.remove()
  for (const [index, { node }] of [...now.values()].entries()) {
    const there = place.children[index] ?? null
    if (there !== node) place.insertBefore(node, there)
  }
  shown.set(place, now)
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

function patch(node: ChildNode, wanted: ChildNode): void {
  if (node.isEqualNode(wanted)) return
  if (!(node instanceof Element && wanted instanceof Element && node.tagName === wanted.tagName)) {
    node.replaceWith(wanted)
    return
  }
  // Leave `open` alone: the user opens and closes the details.
  for (const name of node.getAttributeNames())
    if (name !== 'open' && !wanted.hasAttribute(name)) node.removeAttribute(name)
  for (const { name, value } of wanted.attributes) node.setAttribute(name, value)
  const [old, made] = [[...node.childNodes], [...wanted.childNodes]]
  for (const child of old.slice(made.length)) child.remove()
  for (const [index, child] of made.entries()) {
    const there = old[index]
    if (there === undefined) node.append(child)
    else patch(there, child)
  }
}
