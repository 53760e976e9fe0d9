import { NETWORK, type Trouble } from '../failure.ts'

/** `CREATE TABLE … AS`, for example, copies a table without its primary key. */
export const KEYLESS: string =
  'its table has no primary key (scope, id), so one order could be bought twice. Remove duplicate ' +
  'rows, then run ALTER TABLE … ADD PRIMARY KEY (scope, id).'

/**
 * Errors of database servers, by meaning: codes of PostgreSQL (SQLSTATE, five characters), of MySQL
 * and MariaDB (numbers), and of the clients and Node (words).
 */
export const SERVER_TROUBLES: readonly Trouble[] = [
  [
    'the connection failed, or the server ended it. Try again when the server can be reached.',
    ...NETWORK,
    ...['CONNECTION_LOST', 'CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECT_TIMEOUT'],
    ...['PROTOCOL_CONNECTION_LOST', '08', '57P01', '57P02', '57P05', '1053', '1077', '1079', '1927', '4031'],
  ],
  ['the server is starting or stopping. Try again soon.', '57P03'],
  [
    'the server has no free connections for this user. Raise its limit, or make the pools smaller.',
    ...['53300', '1040', '1203'],
  ],
  [
    'no connection became free in time, or none could be opened. ' +
      'Check the server, find connections that are not released, or enlarge the pool.',
    'POOL_TIMEOUT',
  ],
  [
    'the client that you passed was closed. Keep it open while the store is in use.',
    ...['CLIENT_CLOSED', 'CONNECTION_ENDED'],
  ],
  [
    'the statement was cancelled, or took longer than its time limit allows. Check whether a lock delays it.',
    ...['57014', '1317', '1969', '3024'],
  ],
  ["no response came within pg's `query_timeout`. Try again.", 'QUERY_TIMEOUT'],
  [
    'another transaction locked the row or table for longer than lock_timeout (in MySQL, ' +
      'innodb_lock_wait_timeout) allows. End that transaction.',
    ...['55P03', '1205'],
  ],
  ['a deadlock with another transaction. Try again.', '40P01', '1213'],
  [
    'its connection is inside a transaction, and a rollback could remove an order after it was sent. ' +
      'Find the code that leaves a transaction open, and give the store a pool or its own connection.',
    ...['2D000', '25P02', '1568', '1399'],
  ],
  ['its connection has locked tables. Run UNLOCK TABLES before you release a connection.', '1099', '1100'],
  [
    'the database is read-only, perhaps because it is a replica. Connect to the primary, or allow writes.',
    ...['25006', '1290', '1836'],
  ],
  ['the node is not part of the cluster now. Connect to another node.', '1047'],
  ['the database was dropped. Restore a backup before you order again.', '57P04'],
  [
    "this user may not use the store's tables, or may not create them. Grant access, or run `migrate()` " +
      'as a user that may create them.',
    ...['42501', '1142', '1143', '1044', '1227', '1370'],
  ],
  [
    'the login failed. Check the user, the password and the access rules of the server.',
    ...['28', '1045', '1698', '1251'],
  ],
  ['the database does not exist. Check its name.', '3D000', '1049'],
  ['the schema does not exist. Create it, or set the option `schema`.', '3F000'],
  [
    'its tables are missing. If they were dropped, their orders are forgotten: ' +
      'restore the tables before you order again.',
    ...['42P01', '42883', '1146'],
  ],
  [
    'another table already has the name that the store uses. Set the option `table` to another name.',
    ...['42703', '42809', '42P16', '42P07', '42710', '1050', '1054', '1347'],
  ],
  [KEYLESS, '42P10'],
  ["the server's disk or its table is full. Free up space.", '53100', '1021', '1114'],
  ['the server is out of memory. Try again.', '53200'],
  ['a string, such as the account label, is too long for the database. Shorten it.', '54'],
  ['the row is larger than max_allowed_packet. Raise it.', '1153'],
  ['a number, such as a time, is too large or not an integer. Pass a safe integer.', '22P02', '22003'],
  ['binlog_format is STATEMENT. Set it to ROW, as replicas would differ otherwise.', '1665'],
  ['the server had a system error, such as a failed disk. Check its disk and log.', '58'],
  [
    'its data is damaged. Stop writing to it, keep a copy, then restore a backup, ' +
      'which forgets newer orders: check them with orders.reconcile().',
    ...['XX001', 'XX002'],
  ],
]
