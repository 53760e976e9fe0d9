import { afterAll, beforeAll, expect, it } from 'vitest'
import { contenders } from '../../tools/bench/contenders.ts'
import { ITEM_ID } from '../../tools/bench/orders.ts'
import { type Service, startService } from '../../tools/bench/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

it('the benchmarked service sends responses that every client accepts', async () => {
  for (const { get, list, create } of contenders(service.url)) {
    expect(await get()).toMatchObject({ id: ITEM_ID })
    expect(await create()).toMatchObject({ status: 'pending', metadata: { shop: 'shop-eu' } })
    await list()
  }
})
