/** The list of services, a page at a time. */
import { type CustomerOrderingClient, formatAmount, type Page, type Service } from 'customer-ordering-sdk'
import { announce, byId, make, show } from './dom.ts'
import { choicesOf } from './quantity.ts'
import { isSoldOut, quantityRule, readingFailed, titleOf } from './words.ts'

const PAGE = 6

export function startCatalogue(client: CustomerOrderingClient, choose: (service: Service) => void): void {
  const list = byId('services', HTMLFieldSetElement)
  const note = byId('catalogue-note', HTMLElement)
  const more = byId('more', HTMLButtonElement)
  let pages = walk()
  /** Fetch the next page early, so that the button is shown only if there is one. */
  let ahead: Promise<Page<Service> | undefined> = next()

  function walk(): AsyncIterator<Page<Service>> {
    return client.services.list({ limit: PAGE }).pages()[Symbol.asyncIterator]()
  }
  async function next(): Promise<Page<Service> | undefined> {
    const { value, done } = await pages.next()
    return done === true ? undefined : value
  }

  async function showNext(focus: boolean): Promise<void> {
    list.setAttribute('aria-busy', 'true')
    more.setAttribute('aria-disabled', 'true')
    try {
      const page = await ahead
      const cards = (page?.items ?? []).map((service) => card(service, choose))
      list.append(...cards.map(({ label }) => label))
      show(note, list.childElementCount === 0 ? 'There is nothing to order at the moment.' : '')
      if (focus) {
        cards.find(({ radio }) => !radio.disabled)?.radio.focus()
        announce(`${cards.length} more services`)
      }
      ahead = next()
      more.hidden = (await ahead) === undefined
      more.textContent = 'Show more services'
    } catch {
      // After a failure, start a new iteration at the end of the list.
      show(note, readingFailed(list.childElementCount === 0 ? 'The services' : 'More services'))
      announce(note.textContent)
      pages = client.services
        .list({ limit: PAGE, offset: list.childElementCount })
        .pages()
        [Symbol.asyncIterator]()
      more.hidden = false
      more.textContent = 'Try again'
    } finally {
      list.setAttribute('aria-busy', 'false')
      more.removeAttribute('aria-disabled')
    }
  }

  more.addEventListener('click', () => {
    if (more.getAttribute('aria-disabled') === 'true') return
    if (more.textContent === 'Try again') ahead = next()
    void showNext(true)
  })
  void showNext(false)
}

function card(
  service: Service,
  choose: (service: Service) => void,
): { readonly label: HTMLLabelElement; readonly radio: HTMLInputElement } {
  const choices = choicesOf(service)
  const radio = make('input', '')
  radio.type = 'radio'
  radio.name = 'service'
  radio.value = service.productId
  radio.disabled = isSoldOut(service) || choices === undefined
  radio.addEventListener('change', () => choose(service))
  const rule = isSoldOut(service)
    ? 'Sold out'
    : choices === undefined
      ? 'Not available'
      : quantityRule(choices.first, choices.last, choices.step)
  const label = make(
    'label',
    'card',
    radio,
    make('span', 'title', titleOf(service)),
    make('span', 'price', formatAmount(service, navigator.language)),
    make('span', radio.disabled ? 'rule out' : 'rule', rule),
  )
  return { label, radio }
}
