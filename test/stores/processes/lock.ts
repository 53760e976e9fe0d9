// Holds the write lock of the database at the given path until the parent tells it to stop.
import { DatabaseSync } from 'node:sqlite'

const database = new DatabaseSync(process.argv[2] ?? '')
database.exec('BEGIN IMMEDIATE')
process.once('message', () => {
  database.exec('ROLLBACK')
  database.close()
  process.send?.('released', () => process.disconnect())
})
process.send?.('locked')
