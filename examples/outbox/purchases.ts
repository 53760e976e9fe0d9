/** The queries of the table `purchases`, with plain pg. `purchases-drizzle.ts` has them in Drizzle. */
import type pg from 'pg'

/** A row without an outcome. */
export interface Purchase {
  readonly id: string
  readonly serviceId: string
  readonly target: string
  readonly quantity: number
}

/** What the worker writes into a row. */
export interface Outcome {
  readonly id: string
  readonly state: 'waiting' | 'ordered' | 'refused' | 'doubt'
  readonly orderId?: string | undefined
  readonly reason?: string | undefined
}

export interface Purchases {
  /** Adds a row in a transaction, together with other rows of yours. */
  add(purchase: Purchase): Promise<void>
  /**
   * Takes at most 100 rows without an outcome. Other workers skip these rows for `seconds`, and take
   * them afterwards, because this worker may be dead.
   */
  take(seconds: number): Promise<readonly Purchase[]>
  /** Writes an outcome. `ordered` is final, however late a slow worker writes something else. */
  write(outcome: Outcome): Promise<void>
}

export function purchasesWithPg(pool: pg.Pool): Purchases {
  return {
    async add({ id, serviceId, target, quantity }) {
      const connection = await pool.connect()
      try {
        await connection.query('BEGIN')
        // Your own rows belong here, too: the invoice, the stock, the coupon.
        await connection.query(
          'INSERT INTO purchases (id, service_id, target, quantity) VALUES ($1, $2, $3, $4)',
          [id, serviceId, target, quantity],
        )
        await connection.query('COMMIT')
      } catch (error) {
        await connection.query('ROLLBACK')
        throw error
      } finally {
        connection.release()
      }
    },

    async take(seconds) {
      const { rows } = await pool.query<Purchase>(
        `UPDATE purchases SET tried_at = now()
         WHERE id IN (
           SELECT id FROM purchases
           WHERE state IN ('waiting', 'doubt')
             AND (tried_at IS NULL OR tried_at < now() - make_interval(secs => $1))
           ORDER BY tried_at NULLS FIRST LIMIT 100 FOR UPDATE SKIP LOCKED)
         RETURNING id, service_id AS "serviceId", target, quantity`,
        [seconds],
      )
      return rows
    },

    async write({ id, state, orderId, reason }) {
      await pool.query(
        `UPDATE purchases SET state = $2, order_id = $3, reason = $4
         WHERE id = $1 AND ($2 = 'ordered' OR state IN ('waiting', 'doubt'))`,
        [id, state, orderId, reason],
      )
    },
  }
}
