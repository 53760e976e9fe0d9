import { StoreError } from '../../errors/classes.ts'
import { plainError } from '../plain-error.ts'

const REPLIES: Readonly<Record<string, string>> = {
  OOM: "the server's memory is full. Raise `maxmemory`, or prune old orders.",
  READONLY: 'the server is a replica. Connect the client to the primary.',
  LOADING: 'the server has just started and is still loading its data. Try again.',
  MISCONF: "the server cannot write to its disk. Free up space, or check the server's log.",
  NOREPLICAS:
    "fewer replicas are in sync than the server's `min-replicas-to-write` requires. Check the replicas.",
  CLUSTERDOWN:
    'the cluster does not serve all slots: nodes are down, or a failover is in progress. Try again.',
  MASTERDOWN: 'the server is a replica that lost its primary. Connect the client to the primary.',
  TRYAGAIN:
    'the cluster is moving the slot of these keys to another node. Try again when the move is complete.',
  MOVED: 'the server is a node of a cluster. Pass a cluster client.',
  ASK: 'the server is a node of a cluster. Pass a cluster client.',
  CROSSSLOT: "the client's key prefix breaks the hash tag of the keys. Remove the braces from that prefix.",
  BUSY: 'a script blocks the server. Wait until it ends. SCRIPT KILL stops it only before its first write.',
  NOAUTH: 'the server requires a password. Configure one in the client.',
  WRONGPASS: "the client's user name or password is wrong. Check both.",
  NOPERM:
    "the client's user lacks a permission. Allow it to run EVAL, EVALSHA, GET, GETRANGE, SET, DEL, PERSIST, " +
    "ZADD, ZREM and ZRANGEBYLEX on the store's keys, and INFO.",
  WRONGTYPE: 'other code writes to keys of the store. Give that code other keys.',
}

const CONNECTION =
  'the client is not connected. Check that the server is running and that you connected the client.'
const TIMEOUT = 'the server did not respond in time. Try again.'

/**
 * Redis returns these codes before the first write of a script. Omits READONLY: what a replica does
 * not contain proves nothing about the primary.
 */
const NOT_DONE: ReadonlySet<string> = new Set(['OOM', 'MISCONF', 'NOREPLICAS'])

/**
 * Redis returns these codes without running the script. They prove nothing about an earlier
 * attempt: the client may have sent the script before, on a connection that it lost. So they do not
 * set `applied: false`.
 */
const NOT_RUN: ReadonlySet<string> = new Set([
  ...[
    'READONLY',
    'LOADING',
    'CLUSTERDOWN',
    'MASTERDOWN',
    'MOVED',
    'ASK',
    'CROSSSLOT',
    'BUSY',
    'NOAUTH',
    'WRONGPASS',
  ],
])

/** The error's name in node-redis. ioredis has no name or code for too many redirections. */
const REDIRECTIONS = 'MaxCommandRedirectionsError'

/** By the code of a client or of the network, or by the class name of a client's error. */
const CLIENT_FAILURES: Readonly<Record<string, string>> = {
  CONNECTION_CLOSED: CONNECTION,
  ECONNREFUSED: CONNECTION,
  ECONNRESET: CONNECTION,
  EHOSTUNREACH: CONNECTION,
  ENETUNREACH: CONNECTION,
  ENOENT: CONNECTION,
  ENOTFOUND: CONNECTION,
  EAI_AGAIN: CONNECTION,
  EPIPE: CONNECTION,
  ClientClosedError: CONNECTION,
  ClientOfflineError: CONNECTION,
  ClusterAllFailedError: CONNECTION,
  DisconnectsClientError: CONNECTION,
  MaxRetriesPerRequestError: CONNECTION,
  ReconnectStrategyError: CONNECTION,
  RootNodesUnavailableError: CONNECTION,
  SocketClosedUnexpectedlyError: CONNECTION,
  COMMAND_TIMEOUT: TIMEOUT,
  ETIMEDOUT: TIMEOUT,
  CommandTimeoutDuringMaintenanceError: TIMEOUT,
  ConnectionTimeoutError: TIMEOUT,
  SocketTimeoutDuringMaintenanceError: TIMEOUT,
  SocketTimeoutError: TIMEOUT,
  TimeoutError: TIMEOUT,
  [REDIRECTIONS]:
    "the cluster's nodes keep redirecting the client to each other. Try again when the cluster has settled.",
}

/** ioredis gives these errors neither a code nor a class, so they are recognised by message. */
const TEXTS: Readonly<Record<string, string>> = {
  'Connection is closed.': 'CONNECTION_CLOSED',
  "Stream isn't writeable and enableOfflineQueue options is false": 'CONNECTION_CLOSED',
  'Command timed out': 'COMMAND_TIMEOUT',
}

const NOT_PERMITTED = /The user executing the script|ACL failure in script/

/** Never quotes messages of the server or the client: some contain hosts, keys and parameters. */
export function explain(error: unknown, access: 'read' | 'write'): StoreError {
  if (error instanceof StoreError) return error
  const cause = plainError(error, codeOf(error))
  const failed = `Cannot ${access === 'read' ? 'read from' : 'write to'} the order store in Redis`
  const advice =
    REPLIES[cause.code] ??
    CLIENT_FAILURES[cause.code] ??
    `the client reports ${cause.code}. Check the server's log.`
  if (access === 'read') return new StoreError(`${failed}: ${advice}`, { cause })
  const notDone = NOT_DONE.has(cause.code)
  let written = 'The write may or may not have happened.'
  if (notDone) written = 'Nothing was written.'
  else if (NOT_RUN.has(cause.code)) written = 'This attempt wrote nothing.'
  return new StoreError(`${failed}: ${advice} ${written}`, notDone ? { cause, applied: false } : { cause })
}

export function isRefusedInScript(error: unknown): boolean {
  return textOf(error).startsWith('ERR ')
}

function replyCode(text: string): string | undefined {
  const code = /^([A-Z]{2,}) /.exec(text)?.[1]
  if (code !== 'ERR') return code
  if (NOT_PERMITTED.test(text)) return 'NOPERM'
  if (text.includes('non local key')) return 'TRYAGAIN'
  // Before Redis 7, the code of an error inside a script comes later in the message.
  return /: -([A-Z]{2,}) /.exec(text)?.[1] ?? code
}

function codeOf(error: unknown): string {
  const text = textOf(error)
  const known = replyCode(text) ?? TEXTS[text]
  if (known !== undefined) return known
  if (text.startsWith('Too many Cluster redirections')) return REDIRECTIONS
  if (!(error instanceof Error)) return 'UNKNOWN'
  const code: unknown = Reflect.get(error, 'code')
  if (typeof code === 'string') return code
  // node-redis gives its errors no code, only classes.
  return error.name === 'Error' ? error.constructor.name : error.name
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}
