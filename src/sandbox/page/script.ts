import type { LiveEvent } from '../control/live.ts'
import type { Overview } from '../control/overview.ts'
import type { SandboxFaultStatus } from '../service/faults.ts'
import type { SandboxRequest } from '../service/reply.ts'
import type { SandboxApiKey, SandboxCustomer } from '../service/state.ts'

/**
 * The live page's script. It runs in the page, not here: its text is sent as a file, so it may use nothing from outside
 * itself but the platform's own names. Whatever callers have sent is only ever set as text, never as markup.
 */
export function runPage(): void {
  type Row = readonly (Node | string)[]

  /** Faults that can be switched on with one key press. */
  const toggles: readonly {
    readonly name: string
    readonly hint: string
    readonly rule: { readonly match?: Record<string, string>; readonly action: Record<string, unknown> }
  }[] = [
    {
      name: 'Charge, then lose the answer',
      hint: 'orders: the wallet is debited, the connection breaks',
      rule: { match: { operation: 'createOrder' }, action: { type: 'commitThenDrop' } },
    },
    {
      name: 'Drop the connection',
      hint: 'before anything has happened',
      rule: { action: { type: 'drop' } },
    },
    {
      name: 'Cut the answer in half',
      hint: 'headers, half of the body, then a reset',
      rule: { action: { type: 'cutBody' } },
    },
    {
      name: 'Charge, then answer 503',
      hint: 'orders: an error that hides a charge',
      rule: { match: { operation: 'createOrder' }, action: { type: 'status', status: 503, commit: true } },
    },
    {
      name: 'Still in progress',
      hint: 'orders: 409 IDEMPOTENCY_IN_PROGRESS',
      rule: { match: { operation: 'createOrder' }, action: { type: 'inProgress' } },
    },
    {
      name: '502 from a gateway',
      hint: 'an HTML page instead of JSON',
      rule: { action: { type: 'status', status: 502, html: true } },
    },
    {
      name: 'Too many requests',
      hint: '429 with Retry-After: 2',
      rule: { action: { type: 'retryAfter', value: '2' } },
    },
    {
      name: 'Answer 3 seconds late',
      hint: 'processed at once',
      rule: { action: { type: 'delay', ms: 3000, when: 'after' } },
    },
    {
      name: 'Never answer',
      hint: 'the connection stays open and silent',
      rule: { action: { type: 'stall' } },
    },
    {
      name: 'Amount of the wrong type',
      hint: 'orders: "12.50" instead of an integer',
      rule: {
        match: { operation: 'createOrder' },
        action: { type: 'transformBody', patch: [{ op: 'replace', path: '/amount', value: '12.50' }] },
      },
    },
    {
      name: 'Forget idempotency keys',
      hint: 'orders: a repeated request is charged again',
      rule: { match: { operation: 'createOrder' }, action: { type: 'forgetKeys' } },
    },
    {
      name: 'Small pages',
      hint: 'lists: two rows at most, whatever limit says',
      rule: { action: { type: 'capLimit', limit: 2 } },
    },
  ]

  const KEPT = 200

  let overview: Overview | undefined
  /** API keys that the user has asked to see. */
  const shownKeys = new Map<string, string>()
  const logRows = new Map<number, HTMLTableRowElement>()
  /** What each part of the page shows, so that only changes touch it: focus and open details stay where they are. */
  const drawn = new Map<string, string>()

  function byId(id: string): HTMLElement {
    const found = document.getElementById(id)
    if (found === null) throw new Error(`the page has no ${id}`)
    return found
  }

  function element<Name extends keyof HTMLElementTagNameMap>(
    name: Name,
    attributes: Readonly<Record<string, string>> = {},
    ...children: readonly (Node | string)[]
  ): HTMLElementTagNameMap[Name] {
    const made = document.createElement(name)
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
    made.append(...children)
    return made
  }

  function code(text: string): HTMLElement {
    // Only long texts may break anywhere: short ones would be squeezed by them.
    return element('code', text.length > 40 ? { class: 'long' } : {}, text)
  }

  function badge(kind: 'good' | 'warn' | 'bad' | 'info', text: string): HTMLElement {
    return element('span', { class: `badge ${kind}` }, text)
  }

  /** Exact: minor units are shifted as text, never divided. */
  function money(amount: number, currency: string): string {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency })
    const digits = format.resolvedOptions().maximumFractionDigits ?? 2
    const text = String(Math.abs(amount)).padStart(digits + 1, '0')
    const whole = `${amount < 0 ? '-' : ''}${text.slice(0, text.length - digits)}`
    return format.format((digits === 0 ? whole : `${whole}.${text.slice(-digits)}`) as `${number}`)
  }

  function time(at: number): HTMLElement {
    const date = new Date(at)
    return element('time', { datetime: date.toISOString() }, date.toLocaleTimeString('en-GB'))
  }

  function report(problem: unknown, id = 'problem'): void {
    const place = byId(id)
    place.textContent = problem === null ? '' : problem instanceof Error ? problem.message : String(problem)
    place.hidden = problem === null
  }

  async function call(
    method: string,
    path: string,
    body?: string,
    type = 'application/json',
  ): Promise<unknown> {
    const response = await fetch(`/__sandbox${path}`, {
      method,
      ...(body !== undefined && { body, headers: { 'content-type': type } }),
    })
    const answer: unknown = await response.json()
    if (response.ok) return answer
    const reason = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'error') : undefined
    throw new Error(typeof reason === 'string' ? reason : `the sandbox answered ${response.status}`)
  }

  /** Runs what a button does; a failure is shown, not lost. */
  function act(work: () => Promise<unknown>): void {
    report(null)
    work().catch(report)
  }

  /** Draws a part only if what it shows has changed. */
  function draw(id: string, data: unknown, make: (place: HTMLElement) => void): void {
    const text = JSON.stringify(data)
    if (drawn.get(id) === text) return
    drawn.set(id, text)
    make(byId(id))
  }

  function tableOf(columns: readonly string[], name: string): HTMLTableElement {
    const heads = columns.map((column) =>
      element(
        'th',
        { scope: 'col', role: 'columnheader', ...(isNumber(column) && { class: 'number' }) },
        column,
      ),
    )
    // Roles are said because a narrow page lays rows out as blocks, and browsers then forget that it is a table.
    return element(
      'table',
      { role: 'table', 'aria-label': name },
      element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads)),
      element('tbody', { role: 'rowgroup' }),
    )
  }

  function isNumber(column: string): boolean {
    return ['Amount', 'Quantity', 'Price'].includes(column)
  }

  function fillRow(row: HTMLTableRowElement, columns: readonly string[], cells: Row): void {
    row.setAttribute('role', 'row')
    row.replaceChildren(
      ...cells.map((cell, index) => {
        const column = columns[index] ?? ''
        const inner = element('div', { class: 'cell' }, cell)
        const kind = cell === '' ? 'empty' : isNumber(column) ? 'number' : ''
        const label = { 'data-label': column, ...(kind !== '' && { class: kind }) }
        return index === 0
          ? element('th', { scope: 'row', role: 'rowheader', ...label }, inner)
          : element('td', { role: 'cell', ...label }, inner)
      }),
    )
  }

  function drawTable(id: string, columns: readonly string[], rows: readonly Row[], total: number): void {
    const table = tableOf(columns, id)
    for (const cells of rows) {
      const row = element('tr')
      fillRow(row, columns, cells)
      table.tBodies[0]?.append(row)
    }
    byId(id).replaceChildren(rows.length === 0 ? element('p', { class: 'note' }, 'None.') : table)
    byId(`${id}-count`).textContent = total > rows.length ? `${rows.length} of ${total}` : String(total)
  }

  const logColumns = ['No.', 'Time', 'Request', 'Answer', 'Idempotency-Key', 'API key']

  function answerOf({ status, delivery, charged }: SandboxRequest): HTMLElement {
    const place = element('span')
    if (status === 'running') place.append(badge('info', 'running'))
    else if (status === 'dropped')
      place.append(badge('bad', delivery === 'stall' ? 'never answered' : 'lost'))
    else place.append(badge(status < 300 ? 'good' : status < 500 ? 'warn' : 'bad', String(status)))
    const cut = { cut: 'cut off', stallBody: 'stopped halfway', huge: 'huge' } as const
    if (delivery === 'cut' || delivery === 'stallBody' || delivery === 'huge')
      place.append(badge('bad', cut[delivery]))
    if (charged) place.append(badge('info', 'charged'))
    return place
  }

  function drawRequest(request: SandboxRequest): void {
    const known = logRows.get(request.number)
    const row = known ?? element('tr', { class: 'new' })
    const open = row.querySelector('details')?.open ?? false
    const line = element('span', {}, `${request.method} `, code(request.path))
    if (request.faults.length > 0)
      line.append(element('small', { class: 'fault' }, `fault ${request.faults.join(', ')}`))
    if (request.body !== '') {
      const details = element('details', {}, element('summary', {}, 'body'), element('pre', {}, request.body))
      details.open = open
      line.append(details)
    }
    fillRow(row, logColumns, [
      String(request.number),
      time(request.at),
      line,
      answerOf(request),
      request.idempotencyKey === null ? '' : code(request.idempotencyKey),
      request.apiKeyId === null ? '' : code(request.apiKeyId),
    ])
    if (known !== undefined) return
    logRows.set(request.number, row)
    byId('log').querySelector('tbody')?.prepend(row)
    const [oldest] = logRows.keys()
    if (logRows.size > KEPT && oldest !== undefined) {
      logRows.get(oldest)?.remove()
      logRows.delete(oldest)
    }
  }

  function drawLog(requests: readonly SandboxRequest[], anew: boolean): void {
    if (anew) {
      logRows.clear()
      const table = tableOf(logColumns, 'Requests, newest first')
      table.classList.add('log')
      byId('log').replaceChildren(table)
    }
    for (const request of requests) drawRequest(request)
    byId('log').hidden = logRows.size === 0
    byId('log-empty').hidden = logRows.size > 0
    const newest = [...logRows.keys()].at(-1) ?? 0
    byId('log-count').textContent = newest > logRows.size ? `${logRows.size} of ${newest}` : String(newest)
    const last = requests.findLast(({ status }) => status !== 'running')
    if (anew || last === undefined) return
    const how = last.status === 'dropped' ? 'answer lost' : String(last.status)
    byId('announcement').textContent = `${last.method} ${last.path}: ${how}${last.charged ? ', charged' : ''}`
  }

  function drawWallet({ id, type, wallet }: SandboxCustomer): HTMLElement {
    const amount = element('input', {
      type: 'number',
      step: '1',
      value: '10000',
      required: '',
      id: `add-${id}`,
    })
    const label = element('label', { for: `add-${id}` }, 'Add minor units')
    label.append(element('span', { class: 'unseen' }, ` to ${id}, negative to take away`))
    const form = element('form', {}, label, amount, element('button', { type: 'submit' }, 'Top up'))
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const body = JSON.stringify({ customer: id, amount: amount.valueAsNumber })
      act(() => call('POST', '/top-up', body))
    })
    return element(
      'div',
      { class: 'wallet' },
      element('span', {}, code(id), element('br'), element('small', {}, type)),
      element('strong', {}, wallet === null ? 'no wallet' : money(wallet.amount, wallet.currency)),
      form,
    )
  }

  /** Amounts change while somebody types into the field beside them, so only they are drawn anew. */
  function drawWallets(customers: readonly SandboxCustomer[]): void {
    draw(
      'wallets',
      customers.map(({ id, type }) => [id, type]),
      (place) => place.replaceChildren(...customers.map(drawWallet)),
    )
    const amounts = byId('wallets').querySelectorAll('strong')
    for (const [index, { wallet }] of customers.entries()) {
      const place = amounts[index]
      const text = wallet === null ? 'no wallet' : money(wallet.amount, wallet.currency)
      if (place !== undefined && place.textContent !== text) place.textContent = text
    }
  }

  function isRuleOf(index: number, { rule }: SandboxFaultStatus): boolean {
    const own = toggles[index]?.rule
    return JSON.stringify([own?.match, own?.action]) === JSON.stringify([rule.match, rule.action])
  }

  async function toggle(index: number, on: boolean): Promise<void> {
    const own = (overview?.faults ?? []).filter((status) => isRuleOf(index, status))
    for (const { id } of own) await call('DELETE', `/faults/${id}`)
    if (!on) return
    const chosen = document.querySelector('input[name="times"]:checked')
    const often = chosen instanceof HTMLInputElement ? chosen.value : 'once'
    const times = often === 'once' ? {} : { times: 'always', ...(often === 'some' && { probability: 0.25 }) }
    await call('POST', '/faults', JSON.stringify({ ...toggles[index]?.rule, ...times }))
  }

  function makeToggles(): void {
    for (const [index, { name, hint }] of toggles.entries()) {
      const input = element('input', {
        type: 'checkbox',
        role: 'switch',
        'aria-describedby': `hint-${index}`,
      })
      input.addEventListener('change', () => {
        const { checked } = input
        act(() =>
          toggle(index, checked).catch((error: unknown) => {
            input.checked = !checked
            throw error
          }),
        )
      })
      const label = element('label', {}, input, element('span', {}, name))
      label.append(element('small', { id: `hint-${index}` }, hint))
      byId('toggles').append(label)
    }
  }

  function scopeOf(match: object): string {
    const conditions = Object.entries(match).map(([name, value]) => `${name} ${String(value)}`)
    return conditions.length === 0 ? 'every request' : conditions.join(', ')
  }

  function oftenOf({ rule, acted, matched }: SandboxFaultStatus): string {
    const { times = 1, probability, skip } = rule
    const notes = [
      times === 'always' ? `acted ${acted}, always on` : `acted ${acted} of ${times}`,
      `matched ${matched}`,
      skip === undefined ? '' : `skips ${skip}`,
      probability === undefined ? '' : `chance ${probability}`,
    ]
    return notes.filter((note) => note !== '').join(', ')
  }

  function drawRules(faults: readonly SandboxFaultStatus[]): void {
    for (const [index, input] of [...byId('toggles').querySelectorAll('input')].entries())
      input.checked = faults.some((status) => !status.spent && isRuleOf(index, status))
    byId('rules-count').textContent = String(faults.length)
    byId('clear-rules').hidden = faults.length === 0
    draw('rules', faults, (place) => {
      const held = place.contains(document.activeElement)
      place.replaceChildren(
        ...faults.map((status) => {
          const { match, action } = status.rule
          const remove = element('button', { type: 'button' }, 'Remove')
          remove.setAttribute('aria-label', `Remove rule ${status.id}, ${action.type}`)
          remove.addEventListener('click', () => act(() => call('DELETE', `/faults/${status.id}`)))
          const what = element('span', {}, code(action.type))
          if (status.spent) what.append(' ', badge('info', 'done'))
          const scope = scopeOf(match ?? {})
          what.append(element('small', {}, scope), element('small', {}, oftenOf(status)))
          return element('li', {}, what, remove)
        }),
      )
      // Whoever removes rules one by one with the keyboard stays in the list.
      if (held) (place.querySelector('button') ?? byId('rule')).focus()
    })
  }

  function drawBehaviour({ preset, behaviour }: Overview): void {
    const select = byId('preset')
    if (select instanceof HTMLSelectElement) select.value = preset ?? ''
    draw('switches', behaviour, (place) =>
      place.replaceChildren(
        ...Object.entries(behaviour).flatMap(([name, value]) => [
          element('dt', {}, name),
          element('dd', {}, code(JSON.stringify(value))),
        ]),
      ),
    )
  }

  async function showKey({ id }: SandboxApiKey): Promise<void> {
    if (!shownKeys.delete(id)) {
      const answer = await call('GET', `/api-keys/${encodeURIComponent(id)}`)
      const secret = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'secret') : undefined
      if (typeof secret === 'string') shownKeys.set(id, secret)
    }
    if (overview !== undefined) drawApiKeys(overview.apiKeys)
    document.getElementById(`show-${id}`)?.focus()
  }

  function drawApiKeys(apiKeys: readonly SandboxApiKey[]): void {
    draw('api-keys', [apiKeys, [...shownKeys]], () => {
      const rows = apiKeys.map((apiKey): Row => {
        const { id, customerId, permissions, revoked, sourceSystem } = apiKey
        const shown = shownKeys.get(id)
        const button = element(
          'button',
          { type: 'button', id: `show-${id}` },
          shown === undefined ? 'Show' : 'Hide',
        )
        button.setAttribute('aria-label', `${shown === undefined ? 'Show' : 'Hide'} the API key ${id}`)
        button.addEventListener('click', () => act(() => showKey(apiKey)))
        const text = element('span', {}, code(shown ?? apiKey.secret), ' ', button)
        if (revoked) text.append(' ', badge('bad', 'revoked'))
        return [code(id), text, code(customerId), permissions.join(', '), sourceSystem ?? '']
      })
      drawTable('api-keys', ['Name', 'Key', 'Customer', 'Permissions', 'Source system'], rows, rows.length)
    })
  }

  function drawTables({ orders, ledger, keys, services }: Overview): void {
    draw('orders', orders, () =>
      drawTable(
        'orders',
        ['Order', 'Status', 'Service', 'Quantity', 'Amount', 'Reference', 'Customer', 'Created'],
        orders.newest.map((order) => [
          code(order.id),
          badge('info', order.status ?? ''),
          code(order.serviceId),
          String(order.quantity),
          money(order.amount, order.currency),
          typeof order.metadata?.['externalOrderId'] === 'string'
            ? code(order.metadata['externalOrderId'])
            : '',
          code(order.customerId),
          time(order.createdAt),
        ]),
        orders.total,
      ),
    )
    draw('ledger', ledger, () =>
      drawTable(
        'ledger',
        ['Order', 'Amount', 'Reference', 'Idempotency-Key', 'Customer', 'Time'],
        ledger.newest.map((charge) => [
          code(charge.orderId),
          money(charge.amount, charge.currency),
          charge.externalOrderId === undefined ? '' : code(charge.externalOrderId),
          code(charge.idempotencyKey),
          code(charge.customerId),
          time(charge.at),
        ]),
        ledger.total,
      ),
    )
    const heard = {
      running: badge('info', 'still in progress'),
      died: badge('warn', 'still in progress, its request died'),
      order: badge('good', 'the order again'),
      refusal: badge('warn', 'the refusal again'),
      fault: badge('bad', 'the server error again'),
      free: badge('warn', 'nothing yet: it was refused'),
    } as const
    draw('keys', keys, () =>
      drawTable(
        'keys',
        ['Key', 'Hears', 'Belongs to', 'Since'],
        keys.newest.map((row) => [
          code(row.key),
          heard[row.answer].cloneNode(true),
          code(row.scope),
          time(row.startedAt),
        ]),
        keys.total,
      ),
    )
    draw('services', services, () =>
      drawTable(
        'services',
        ['Service', 'Price', 'Quantities', 'Stock'],
        services.map((service) => [
          code(service.productId),
          money(service.amount, service.currency),
          `${service.minQuantity} to ${service.maxQuantity}, step ${service.stepQuantity}`,
          service.published
            ? service.stock === null
              ? 'any number'
              : String(service.stock)
            : badge('warn', 'not published'),
        ]),
        services.length,
      ),
    )
  }

  function receive(event: LiveEvent, anew: boolean): void {
    overview = event.overview
    drawWallets(overview.customers)
    drawRules(overview.faults)
    drawBehaviour(overview)
    drawTables(overview)
    drawApiKeys(overview.apiKeys)
    drawLog(event.requests, anew)
  }

  function connection(kind: 'good' | 'bad', text: string): void {
    const place = byId('connection')
    place.className = `badge ${kind}`
    if (place.textContent !== text) place.textContent = text
  }

  function listen(): void {
    const events = new EventSource('/__sandbox/events')
    events.addEventListener('open', () => connection('good', 'live'))
    events.addEventListener('error', () => {
      connection('bad', 'not connected')
      // A browser gives up for good when a proxy answers instead; otherwise it tries again by itself.
      if (events.readyState === EventSource.CLOSED) setTimeout(listen, 2000)
    })
    for (const name of ['snapshot', 'update'])
      events.addEventListener(name, (event) =>
        receive(JSON.parse(event.data) as LiveEvent, name === 'snapshot'),
      )
  }

  byId('address').textContent = location.origin
  byId('example-address').textContent = location.origin
  makeToggles()
  byId('reset').addEventListener('click', () => act(() => call('POST', '/reset')))
  byId('forget').addEventListener('click', () => act(() => call('POST', '/forget-keys')))
  byId('clear-rules').addEventListener('click', () => act(() => call('DELETE', '/faults')))
  byId('preset').addEventListener('change', (event) => {
    if (!(event.target instanceof HTMLSelectElement)) return
    const body = JSON.stringify({ preset: event.target.value })
    act(() => call('PUT', '/behaviour', body))
  })
  byId('rule-form').addEventListener('submit', (event) => {
    event.preventDefault()
    const field = byId('rule')
    const text = field instanceof HTMLTextAreaElement ? field.value : ''
    report(null, 'rule-problem')
    const type = /^\s*[[{]/.test(text) ? 'application/json' : 'application/yaml'
    call('POST', '/faults', text, type).catch((error: unknown) => report(error, 'rule-problem'))
  })
  listen()
}
