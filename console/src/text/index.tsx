// The language of the page, and how numbers and times are written in it.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { de } from "./de";
import { en, type Text } from "./en";

export const LANGUAGES = { en, de } as const;
export type Language = keyof typeof LANGUAGES;

const KEY = "ebbtide.language";

/** The language chosen in this tab, or else the browser's, or else English. */
export function firstLanguage(): Language {
  let chosen: string | null = null;
  try {
    chosen = sessionStorage.getItem(KEY);
  } catch {
    // Storage may be forbidden.
  }
  const wanted = [chosen ?? "", ...navigator.languages].map((word) => word.slice(0, 2));
  const known = wanted.find((word): word is Language => word in LANGUAGES);
  return known ?? "en";
}

export function keepLanguage(language: Language): void {
  try {
    sessionStorage.setItem(KEY, language);
  } catch {
    // Storage may be forbidden; the choice then lasts until the page is loaded again.
  }
}

const Current = createContext<Language>("en");
export const LanguageProvider = Current.Provider;

export interface Locale {
  language: Language;
  text: Text;
  number: (value: number, digits?: number) => string;
  percent: (value: number) => string;
  /** An amount without its currency, which the region does not know. */
  money: (value: number) => string;
  time: (at: string | number) => string;
  dateTime: (at: string) => string;
  duration: (seconds: number) => string;
}

const locales = new Map<Language, Locale>();

export function locale(language: Language): Locale {
  const known = locales.get(language);
  if (known !== undefined) return known;
  const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 0 });
  const money = new Intl.NumberFormat(language, {
    minimumFractionDigits: 2,
    maximumFractionDigits: 6,
  });
  const time = new Intl.DateTimeFormat(language, { timeStyle: "medium", hour12: false });
  const dateTime = new Intl.DateTimeFormat(language, {
    dateStyle: "medium",
    timeStyle: "medium",
    hour12: false,
  });
  const valid = (at: string | number, format: Intl.DateTimeFormat): string => {
    const date = new Date(at);
    return Number.isNaN(date.getTime()) ? "" : format.format(date);
  };
  const made: Locale = {
    language,
    text: LANGUAGES[language],
    number: (value, digits = 2) =>
      new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value),
    percent: (value) => percent.format(value),
    money: (value) => money.format(value),
    time: (at) => valid(at, time),
    dateTime: (at) => valid(at, dateTime),
    duration,
  };
  locales.set(language, made);
  return made;
}

/** A duration in the two largest units that it has. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor((whole % 86_400) / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = whole % 60;
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${rest} s`;
  return `${rest} s`;
}

/** The texts and formats of the page's language. */
export function useLocale(): Locale {
  return locale(useContext(Current));
}
