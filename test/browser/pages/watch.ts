/** Loaded first in a page. Records policy violations and uncaught errors. */

declare global {
  interface Window {
    /** Violations of the policy so far, in words. */
    violations: string[]
  }
}

window.violations = []
document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI, sample }) => {
  window.violations.push(`${effectiveDirective}: ${blockedURI} ${sample}`.trim())
})

const fail = (reason: unknown): void => {
  const { message, stack = '' } = reason instanceof Error ? reason : new Error(String(reason))
  void fetch(`/failed${location.search}`, { method: 'POST', body: JSON.stringify(`${message}\n${stack}`) })
}
addEventListener('error', ({ error, message }) => fail(error ?? message))
addEventListener('unhandledrejection', ({ reason }) => fail(reason))

export {}
