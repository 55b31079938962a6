/** Names and tactics of the techniques of MITRE ATT&CK that the detection rules name. Source: https://attack.mitre.org, version 18. */

const tactics = {
  TA0001: 'Initial Access',
  TA0003: 'Persistence',
  TA0004: 'Privilege Escalation',
  TA0005: 'Defense Evasion',
  TA0007: 'Discovery',
  TA0009: 'Collection',
  TA0040: 'Impact',
} as const;

const techniques: Readonly<Record<string, { readonly name: string; readonly tactics: readonly (keyof typeof tactics)[] }>> = {
  T1070: { name: 'Indicator Removal', tactics: ['TA0005'] },
  T1078: { name: 'Valid Accounts', tactics: ['TA0001', 'TA0003', 'TA0004', 'TA0005'] },
  'T1078.004': { name: 'Cloud Accounts', tactics: ['TA0001', 'TA0003', 'TA0004', 'TA0005'] },
  T1083: { name: 'File and Directory Discovery', tactics: ['TA0007'] },
  T1098: { name: 'Account Manipulation', tactics: ['TA0003', 'TA0004'] },
  T1213: { name: 'Data from Information Repositories', tactics: ['TA0009'] },
  T1222: { name: 'File and Directory Permissions Modification', tactics: ['TA0005'] },
  T1486: { name: 'Data Encrypted for Impact', tactics: ['TA0040'] },
  T1530: { name: 'Data from Cloud Storage', tactics: ['TA0009'] },
  T1562: { name: 'Impair Defenses', tactics: ['TA0005'] },
  'T1562.008': { name: 'Disable or Modify Cloud Logs', tactics: ['TA0005'] },
};

interface Reference {
  readonly id: string;
  readonly name: string;
  readonly reference: string;
}

interface Tactic {
  readonly tactic: Reference;
  readonly technique: readonly (Reference & { readonly subtechnique?: readonly Reference[] })[];
}

/** The tactics of techniques in their order, and in each its techniques with their sub-techniques. */
export function tacticsOf(attack: readonly string[]): readonly Tactic[] {
  return Object.entries(tactics).flatMap(([id, name]) => {
    const own = attack.filter((each) => techniqueOf(each).tactics.some((tactic) => tactic === id));
    if (own.length === 0) return [];
    const parents = [...new Set(own.map((each) => each.slice(0, 5)))];
    const technique = parents.map((parent) => {
      const subtechnique = own.filter((each) => each.startsWith(`${parent}.`)).map(referenceOf);
      return subtechnique.length === 0 ? referenceOf(parent) : { ...referenceOf(parent), subtechnique };
    });
    return [{ tactic: { id, name, reference: `https://attack.mitre.org/tactics/${id}/` }, technique }];
  });
}

function techniqueOf(id: string): (typeof techniques)[string] {
  const found = techniques[id];
  if (!found) throw new Error(`tools/content/attack.ts does not have the technique ${id}`);
  return found;
}

const referenceOf = (id: string): Reference => ({
  id,
  name: techniqueOf(id).name,
  reference: `https://attack.mitre.org/techniques/${id.replace('.', '/')}/`,
});

/** SigmaHQ names the tactics of a later version, in which two tactics follow Defense Evasion. */
const ofEvasion: Readonly<Record<string, string>> = { T1222: 'defense-impairment', T1078: 'stealth', 'T1078.004': 'stealth' };

/** Tags of Sigma for the tactics and techniques. */
export function sigmaTagsOf(attack: readonly string[]): readonly string[] {
  const tags = attack.flatMap((id) => [
    ...techniqueOf(id).tactics.map((tactic) =>
      tactic === 'TA0005' ? (ofEvasion[id] ?? 'defense-evasion') : tactics[tactic].toLowerCase().replaceAll(' ', '-'),
    ),
    id.toLowerCase(),
  ]);
  return [...new Set(tags)].map((tag) => `attack.${tag}`);
}
