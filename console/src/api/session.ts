// The token of this tab. The session storage of the browser ends with the tab, is not shared with
// other tabs, and is never sent by itself: no page of another origin can use the token.

const KEY = "ebbtide.token";

let token = read();

function read(): string {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    // Storage may be forbidden; the token is then in memory only.
    return "";
  }
}

/** The token, or an empty string. */
export function currentToken(): string {
  return token;
}

/** Keeps another token; an empty string forgets it. */
export function useToken(next: string): void {
  token = next.trim();
  try {
    if (token === "") sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
  } catch {
    // In memory only, see above.
  }
}

/** True if a request can carry this text as a token. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text.trim());
}
