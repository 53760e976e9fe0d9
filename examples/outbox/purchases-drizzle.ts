/** The queries of the table `purchases`, with Drizzle. */
import { and, eq, inArray, isNull, or, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core'
import type pg from 'pg'
import type { Purchases } from './purchases.ts'

export const purchases = pgTable('purchases', {
  id: text().primaryKey(),
  serviceId: text('service_id').notNull(),
  target: text().notNull(),
  quantity: integer().notNull(),
  state: text({ enum: ['waiting', 'ordered', 'refused', 'doubt'] })
    .notNull()
    .default('waiting'),
  orderId: text('order_id'),
  reason: text(),
  triedAt: timestamp('tried_at', { withTimezone: true }),
})

const { id, serviceId, target, quantity, state, triedAt } = purchases
const unsettled = inArray(state, ['waiting', 'doubt'])

export function purchasesWithDrizzle(pool: pg.Pool): Purchases {
  const db = drizzle(pool)
  return {
    async add(purchase) {
      await db.transaction(async (transaction) => {
        // Your own rows belong here, too: the invoice, the stock, the coupon.
        await transaction.insert(purchases).values(purchase)
      })
    },

    async take(seconds) {
      const due = or(isNull(triedAt), sql`${triedAt} < now() - make_interval(secs => ${seconds})`)
      const next = db
        .select({ id })
        .from(purchases)
        .where(and(unsettled, due))
        .orderBy(sql`${triedAt} NULLS FIRST`)
        .limit(100)
        .for('update', { skipLocked: true })
      return await db
        .update(purchases)
        .set({ triedAt: sql`now()` })
        .where(inArray(id, next))
        .returning({ id, serviceId, target, quantity })
    },

    async write(outcome) {
      await db
        .update(purchases)
        .set({ state: outcome.state, orderId: outcome.orderId ?? null, reason: outcome.reason ?? null })
        .where(and(eq(id, outcome.id), outcome.state === 'ordered' ? undefined : unsettled))
    },
  }
}
