// Sign in with a token: of the region, or of Keystone.

import { useState } from "preact/hooks";
import { isToken } from "./api/session";
import { useLocale } from "./text";

export function Login(props: {
  why: "first" | "refused" | "expired";
  submit: (token: string) => void;
}) {
  const { text } = useLocale();
  const [token, setToken] = useState("");
  const [malformed, setMalformed] = useState(false);
  const reason = malformed
    ? text.login.shape
    : props.why === "refused"
      ? text.login.refused
      : props.why === "expired"
        ? text.login.expired
        : "";
  return (
    <section class="login" aria-labelledby="heading">
      <h1 id="heading">{text.login.heading}</h1>
      <p>{text.login.intro}</p>
      <form
        onSubmit={(submit) => {
          submit.preventDefault();
          setMalformed(!isToken(token));
          if (isToken(token)) props.submit(token.trim());
        }}
      >
        <label for="token">{text.login.label}</label>
        {/* Not kept by the browser, and not shown on a screen that others see. */}
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          value={token}
          aria-describedby="token-hint"
          aria-invalid={reason !== ""}
          onInput={(input) => setToken(input.currentTarget.value)}
        />
        <p id="token-hint" class="quiet">
          {text.login.hint}
        </p>
        {reason !== "" && (
          <p class="box bad" role="alert">
            {reason}
          </p>
        )}
        <button type="submit">{text.login.submit}</button>
      </form>
    </section>
  );
}
