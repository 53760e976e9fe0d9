import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ownContenders } from '../../bench/contenders.ts'
import { placers } from '../../bench/create.ts'
import { ITEM_ID, type Service, startService } from '../../bench/service.ts'

describe('what the bench measures', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService(0, 100)
  })
  afterAll(() => service.close())

  it('are responses that every client of it accepts', async () => {
    for (const { get, list, post } of ownContenders(service.url)) {
      expect(await get()).toMatchObject({ id: ITEM_ID })
      expect(await post()).toMatchObject({ status: 'delivered' })
      await list()
    }
    for (const place of placers(service.url).values())
      expect(await place()).toMatchObject({ status: 'delivered' })
  })
})
