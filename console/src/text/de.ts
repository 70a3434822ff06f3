// German texts.

import type { Text } from "./en";

const plural = (n: number, one: string, many: string): string => `${n} ${n === 1 ? one : many}`;
const hosts = (n: number): string => plural(n, "Host", "Hosts");
const servers = (n: number): string => plural(n, "Server", "Server");

export const de: Text = {
  language: "Deutsch",
  title: "Ebbtide-Konsole",
  skip: "Zum Inhalt",
  navigation: "Ansichten",
  views: {
    evacuations: "Räumungen",
    decisions: "Entscheidungen",
    capacity: "Kapazität",
    whatIf: "Was wäre wenn",
    servers: "Meine Server",
    prices: "Preise",
  },
  languageChoice: "Sprache",
  signOut: "Abmelden",
  loading: "Wird geladen …",
  refresh: "Neu lesen",
  none: "keine",
  back: "Zurück",
  yes: "ja",
  no: "nein",

  login: {
    heading: "Anmelden",
    intro: "Diese Region verlangt ein Token.",
    label: "Token",
    hint:
      "Ein Token dieser Region (ebbtide-manage token create) oder ein Keystone-Token " +
      "(openstack token issue -f value -c id). Der Tab vergisst es, wenn er geschlossen wird.",
    submit: "Anmelden",
    refused: "Der Scheduler nimmt dieses Token nicht an.",
    shape: "Ein Token hat nur druckbare Zeichen und keine Leerzeichen.",
    expired: "Das Token gilt nicht mehr. Melden Sie sich neu an.",
  },

  feed: {
    connecting: "Verbindung wird aufgebaut …",
    live: "Live",
    lost: (time) =>
      `Der Scheduler antwortet seit ${time} nicht. Die Seite zeigt den Stand von da und ` +
      "versucht es von selbst wieder.",
    refused: "Live-Ereignisse sind nicht verfügbar:",
    back: "Der Scheduler antwortet wieder.",
  },
  problem: {
    unreachable: "Der Scheduler antwortet nicht.",
    next: "Nächster Schritt:",
    retry: "Noch einmal versuchen",
  },

  state: {
    claimed: "zugesagt",
    notified: "angekündigt",
    draining: "in der Frist",
    evacuated: "geräumt",
    spared: "verschont",
    failed: "fehlgeschlagen",
  },
  cause: {
    preemption: "von einer normalen Anfrage verdrängt",
    "max-lifetime": "lebte so lange, wie sein Flavor erlaubt",
    "out-of-bid": "Preis über seinem Höchstpreis",
    headroom: "Kapazität wird für normale Anfragen frei gehalten",
    reclaim: "der Eigentümer nimmt den Host zurück",
  },
  behaviour: {
    terminate: "beenden",
    stop: "anhalten",
    hibernate: "einfrieren",
    "live-migrate": "live verschieben",
  },

  evacuations: {
    heading: "Räumungen",
    intro: "Welche Server gehen müssen, was sie verdrängt hat und wie viel Zeit ihnen bleibt.",
    find: "Server, Host oder Projekt suchen",
    failed: "Fehlgeschlagen",
    active: "Im Gang",
    ended: "Beendet",
    noneFailed: "Keine Räumung ist fehlgeschlagen.",
    noneActive: "Zur Zeit geht kein Server.",
    noneEnded: "Noch ist keine Räumung beendet.",
    noMatch: "Keine Räumung passt zur Suche.",
    victim: "Server",
    displacedBy: "Verdrängt von",
    host: "Host",
    state: "Zustand",
    remaining: "Frist",
    cost: "Kosten",
    project: (name) => `Projekt ${name}`,
    why: "Warum?",
    whyOf: (name) => `Warum wurde ${name} verdrängt?`,
    hidden: "einer normalen Anfrage",
    over: "abgelaufen",
    noticePending: "Ankündigung noch nicht bestätigt",
    secondsLeft: (time) => `noch ${time}`,
    endedAt: (time) => `beendet ${time}`,
    nextStep: "Nächster Schritt",
    started: (name) => `${name} hat seine Ankündigung erhalten`,
    nowFailed: (name) => `Die Räumung von ${name} ist fehlgeschlagen`,
    count: (n) => plural(n, "Räumung", "Räumungen"),
    more: (n) => `${n} ältere werden nicht gezeigt: Suchen Sie nach einem Namen.`,
  },
  nextSteps: {
    "EB-EVACUATION-001":
      "Sehen Sie nach dem Agenten dieses Hosts: Er läuft nicht, ist vom Broker getrennt oder " +
      "liest seine Warteschlange nicht.",
    "EB-EVACUATION-002":
      "Sehen Sie nach dem Host: Sein Hypervisor ist langsam oder hängt. Erhöhen Sie " +
      "act_timeout_seconds, wenn das Beenden regelmäßig länger dauert.",
    "EB-EVACUATION-003":
      "Warten Sie auf das nächste Lebenszeichen des Hosts. Es sagt, ob der Server läuft. Sehen " +
      "Sie nach dem Agenten, wenn keines kommt.",
    "EB-EVACUATION-004": "Das Löschen geht weiter. Sehen Sie nach dem Agenten dieses Hosts.",
    "EB-EVACUATION-005":
      "Wenn es sich wiederholt, suchen Sie zwei Scheduler mit gleichem Namen am Bus.",
    "EB-EVACUATION-006":
      "Lesen Sie die Meldung des Agenten. Läuft der Server nicht und ist seine Kapazität nicht " +
      "frei, räumen Sie auf dem Host auf.",
    other: "Sehen Sie in das Log des Agenten dieses Hosts.",
  },

  decisions: {
    heading: "Entscheidungen",
    intro: "Die letzten Anfragen. Jede zeigt, warum ihre Server sind, wo sie sind.",
    find: "Entscheidung, Server oder Anfrage (ID oder Name eines Servers)",
    open: "Zeigen",
    at: "Zeit",
    flavor: "Flavor",
    project: "Projekt",
    result: "Ergebnis",
    refused: "kein passender Host",
    placed: (names) => `auf ${names}`,
    victims: (n) => plural(n, "verdrängter Server", "verdrängte Server"),
    empty: "Es gibt noch keine Entscheidung.",
    notFound:
      "Es gibt keine solche Entscheidung. Vielleicht ist sie älter, als der Scheduler aufbewahrt.",
  },
  decision: {
    heading: "Warum",
    displaced: (victim, preemptor) => `${victim} wurde von ${preemptor} verdrängt.`,
    displacedWhy: (host, cost) =>
      `Auf ${host} kostet der Verlust der verdrängten Server am wenigsten: ${cost}.`,
    summaryPlaced: (count, flavor, names) =>
      `${servers(count)} mit Flavor ${flavor} auf ${names} untergebracht.`,
    summaryRefused: (count, flavor) =>
      `Kein passender Host für ${servers(count)} mit Flavor ${flavor}.`,
    noVictims: "Kein Server musste gehen.",
    picture: "Der Weg der Anfrage",
    server: (n) => `Server ${n}`,
    instance: (n, of) => `Server ${n} von ${of}`,
    request: "Anfrage",
    normal: "normal",
    preemptible: "verdrängbar",
    onNormal:
      "Die Filter sahen den normalen Zustand h_n: Kapazität verdrängbarer Server gilt als frei.",
    onFull: "Die Filter sahen den vollen Zustand h_f: Jeder Server zählt.",
    hostsIn: hosts,
    filter: "Filter",
    dropped: (n) => `${n} verworfen`,
    kept: (n) => `${hosts(n)} übrig`,
    unchanged: (n) => `${plural(n, "Filter verwarf", "Filter verwarfen")} keinen Host: `,
    ranking: (n) => `Rangfolge von ${hosts(n)}`,
    rankingHint: "Niedrigere Kosten zuerst, dann höheres Gewicht.",
    chosen: "gewählt",
    runnerUp: "Zweiter",
    cost: "Kosten der Verdrängten",
    weight: "Gewicht",
    victimsOf: "Verdrängte Server",
    noVictim: "keine: Es ist Platz",
    notCompared: "für die Entscheidung nicht nötig",
    dearer: (difference) => `${difference} mehr als der gewählte Host`,
    weights: "Gewichte",
    result: "Ergebnis",
    waits: "wartet, bis die verdrängten Server gegangen sind",
    starts: "startet sofort",
    missing: "Was fehlt",
    missingRow: (need, free) => `braucht ${need}, höchstens ${free} auf einem Host frei`,
    missingHosts: (n) => `fehlt auf ${hosts(n)}`,
    age: (text) => `${text} alt`,
    notOptimal: (gap) => `Eine Grenze beendete die Suche: höchstens ${gap} vom Optimum.`,
    policy: (policy, costs) => `Regel ${policy}, Kostenmodul ${costs}`,
    elided: (n) => `und ${n} weitere`,
    unexplained: "Diese Entscheidung ist ohne Erklärung gespeichert.",
  },

  capacity: {
    heading: "Kapazität",
    intro: "Jede Zelle ist ein Host. Wählen Sie eine Zelle, um seine Server zu sehen.",
    resource: "Ressource",
    group: "Gruppieren nach",
    groups: { zone: "Verfügbarkeitszone", aggregate: "Aggregat", none: "Ohne Gruppen" },
    show: "Zeigen",
    measures: {
      both: "Beides: von normalen (links), von allen belegt (rechts)",
      full: "Von allen Servern belegt (h_f)",
      normal: "Von normalen Servern belegt (h_n)",
      sold: "An verdrängbare Server verkauft",
    },
    legend: "Belegt",
    unavailable: "aus oder gesperrt",
    map: "Karte der Hosts",
    mapHint: "Pfeiltasten bewegen, Eingabe öffnet den Host.",
    find: "Host suchen",
    hosts,
    table: "Dasselbe als Tabelle",
    groupName: "Gruppe",
    total: "Kapazität",
    usedNormal: "Normale Server",
    usedAll: "Alle Server",
    soldColumn: "Verdrängbare Server",
    free: "Frei (alle)",
    freeNormal: "Frei (nur normale)",
    noGroup: "in keinem Aggregat",
    empty: "Die Region hat noch keinen Host.",
    cell: (host, zone, normal, full) =>
      `${host}, Zone ${zone}: ${normal} von normalen Servern belegt, ${full} von allen`,
  },
  host: {
    health: "Zustand",
    zone: "Verfügbarkeitszone",
    aggregates: "Aggregate",
    servers: "Server",
    none: "Auf diesem Host ist kein Server.",
    close: "Schließen",
    kind: "Art",
    status: "Status",
    name: "Name",
    flavor: "Flavor",
  },

  whatIf: {
    heading: "Was wäre wenn",
    intro: "Was würde eine Anfrage tun? Nichts ändert sich, und kein Server wird verdrängt.",
    flavor: "Flavor",
    count: "Anzahl Server",
    zone: "Verfügbarkeitszone",
    anyZone: "beliebig",
    project: "Projekt",
    submit: "Fragen",
    nobody: "Kein Server müsste gehen.",
    somebody: (n) => `${plural(n, "Server müsste", "Server müssten")} gehen:`,
    refused: "Kein passender Host: Nichts würde untergebracht.",
    placements: "Wohin die Server kämen",
    notes: "Was die Antwort nicht weiß",
    noFlavors: "Die Region hat noch keinen Flavor: Legen Sie zuerst einen an.",
    badCount: "Die Anzahl muss zwischen 1 und 1000 liegen.",
  },
};
