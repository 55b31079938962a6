/**
 * The permitted imports, one row for each folder or file: `npm run lint` reads the import graph, and fails for an import that no row allows and for
 * a circle of files. Paths are below `src/`, a package has its own name, `node` stands for every built-in module. The longest path that matches a
 * file is its row.
 */
import { readdirSync } from 'node:fs';

/** From the ground up: a folder imports nothing of a folder after it. */
const floors = [
  ...[
    'model/',
    'errors/',
    'disk/',
    'record/',
    'time/',
    'settings/',
    'collect/',
    'encode/',
    'normalize/',
    'connect/',
    'journal/',
    'fleet/',
    'telemetry/',
  ],
  ...['archive/', 'detections/', 'report/', 'source/', 'admin/', 'sink/', 'deliver/', 'config/', 'daemon/', 'cli/', 'main.ts'],
];
const belowDaemon = floors.slice(0, floors.indexOf('daemon/'));
const ground = ['model/', 'errors/'];
const importsOfCommands = [
  ...[
    ...belowDaemon,
    'cli/',
    'daemon/open-delivery.ts',
    'daemon/open-journal.ts',
    'daemon/open-sink.ts',
    'daemon/open-source.ts',
    'daemon/operations/',
  ],
  ...['daemon/daemon.ts', 'yaml', 'zod', 'node'],
];
/** Imports of a sink in addition to those that every sink may have. */
const importsOfOneSink = {
  archive: ['archive/'],
  elasticsearch: ['disk/files.ts', '@elastic/elasticsearch'],
  file: ['disk/lock.ts'],
  kafka: ['kafkajs'],
  'splunk-hec': ['disk/version.ts'],
  syslog: ['disk/version.ts'],
};
const rows = [
  // Imported by all other folders.
  ['model/', ['model/']],
  ['errors/', ['errors/']],
  ['time/', [...ground, 'node']],
  // An exclusive transaction is the lock that the operating system releases with the process.
  ['disk/', ['disk/', 'better-sqlite3', 'node']],
  ['record/', ['record/', 'model/', 'node:buffer', 'node:crypto']],
  ['settings/', ['settings/', ...ground, 'disk/regular-file.ts', 'record/timestamp.ts', 'zod', 'node']],
  // From the service to the journal and on to a message.
  ['connect/', ['connect/', ...ground, 'time/deadline.ts', 'settings/loopback.ts', 'undici', 'node']],
  ['source/', [...['source/', 'record/', 'connect/', 'time/deadline.ts'], ...ground, ...['undici', 'openid-client', 'jose', 'node']]],
  ['collect/', ['collect/', 'time/backoff.ts', 'record/', ...ground, 'node:crypto']],
  ['collect/windows.ts', ['model/']],
  ['journal/', ['journal/', 'record/', 'disk/files.ts', 'disk/lock.ts', ...ground, 'better-sqlite3', 'node']],
  ['journal/window-counts.ts', ['model/']],
  ['fleet/', ['fleet/', 'journal/', 'time/', 'settings/', ...ground, 'better-sqlite3', 'pg', 'node']],
  ['fleet/settings.ts', ['settings/', 'zod']],
  ['normalize/', ['normalize/', 'record/', ...ground, 'node:crypto']],
  ['encode/', ['encode/', 'record/', 'model/', 'node:crypto']],
  ['archive/', ['archive/', 'record/', ...ground, 'zod', 'node']],
  ['detections/', ['detections/', ...ground, 'yaml', 'zod', 'node']],
  ['archive/bucket/', ['archive/', 'connect/', ...ground, '@aws-sdk/client-s3', 'node']],
  [
    'archive/timestamp/',
    [
      ...['archive/', 'connect/', ...ground, 'asn1js'],
      ...['@peculiar/asn1-cms', '@peculiar/asn1-schema', '@peculiar/asn1-tsp', '@peculiar/asn1-x509', 'node'],
    ],
  ],
  ['archive/witness/', ['archive/', 'connect/', ...ground, 'node']],
  ['archive/merkle.ts', ['node:crypto']],
  ['archive/tiles.ts', ['archive/merkle.ts']],
  ['archive/tiled-tree.ts', ['archive/merkle.ts', 'archive/tiles.ts']],
  ['deliver/', ['deliver/', 'time/backoff.ts', 'time/deadline.ts', 'record/', ...ground]],
  // A sink knows no other sink.
  ['sink/define.ts', ['connect/', 'encode/index.ts', 'model/', 'zod']],
  ['sink/index.ts', ['sink/']],
  ['sink/stdout.ts', ['sink/define.ts', 'time/deadline.ts', ...ground, 'zod', 'node']],
  ...readdirSync(new URL('src/sink', import.meta.url), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => [`sink/${name}/`, importsOfSink(name)]),
  // The settings of a folder are next to its code; src/config assembles the configuration from them.
  ['connect/settings.ts', ['settings/', 'zod']],
  ['source/settings.ts', ['settings/', 'connect/settings.ts', 'model/', 'zod']],
  ['journal/settings.ts', ['settings/', 'zod']],
  ['normalize/settings.ts', ['normalize/', 'record/', 'zod']],
  ['encode/settings.ts', ['zod']],
  ['deliver/settings.ts', ['settings/', 'encode/index.ts', 'sink/define.ts', 'model/', 'zod']],
  ['admin/settings.ts', ['settings/', 'zod']],
  ['telemetry/settings.ts', ['settings/', 'zod']],
  [
    'config/',
    [
      ...[
        'config/',
        'settings/',
        'admin/settings.ts',
        'collect/windows.ts',
        'connect/settings.ts',
        'deliver/settings.ts',
        'encode/index.ts',
        'encode/settings.ts',
        'fleet/settings.ts',
        'journal/settings.ts',
        'telemetry/settings.ts',
        'telemetry/variables.ts',
      ],
      ...['normalize/', 'source/settings.ts', 'sink/define.ts', 'sink/index.ts', 'record/'],
      ...['disk/regular-file.ts', 'time/deadline.ts', ...ground, 'zod', 'yaml', 'node'],
    ],
  ],
  // Observes the daemon.
  ['telemetry/', ['telemetry/', 'time/deadline.ts', ...ground, 'pino', 'pino-pretty', '@opentelemetry/', 'node']],
  [
    'report/',
    [
      'report/',
      'collect/windows.ts',
      'journal/window-counts.ts',
      'settings/nearest.ts',
      'telemetry/delays.ts',
      'record/text.ts',
      ...ground,
      'node:crypto',
    ],
  ],
  [
    'admin/',
    ['admin/', 'report/', 'disk/files.ts', 'settings/loopback.ts', 'disk/regular-file.ts', 'connect/node-http.ts', ...ground, 'node'],
  ],
  ['daemon/', [...belowDaemon, 'daemon/', 'node']],
  [
    'daemon/source/',
    [
      ...['daemon/source/', 'daemon/live-status.ts', 'daemon/open-source.ts', 'daemon/options.ts', 'daemon/when-writable.ts'],
      ...['source/', 'collect/', 'journal/', 'config/', 'record/', 'report/backfills.ts', 'telemetry/delays.ts', 'time/', ...ground],
    ],
  ],
  [
    'daemon/delivery/',
    [
      ...['daemon/delivery/', 'daemon/open-sink.ts', 'daemon/source/profile.ts'],
      ...['journal/', 'normalize/', 'deliver/', 'sink/', 'config/', 'connect/trust.ts', 'record/', 'settings/', ...ground],
    ],
  ],
  [
    'daemon/operations/',
    [
      ...[
        'daemon/operations/',
        'daemon/open-delivery.ts',
        'archive/line-ranges.ts',
        'archive/parse-line.ts',
        'collect/scheduler.ts',
        'fleet/',
        'journal/',
        'normalize/outcomes.ts',
      ],
      ...['report/', 'settings/', 'telemetry/log.ts', ...ground, 'zod'],
    ],
  ],
  [
    'daemon/admin/',
    [
      ...['daemon/admin/', 'daemon/carried-error.ts', 'daemon/channel.ts', 'daemon/collect-when-idle.ts', 'admin/', 'report/', 'journal/'],
      ...['fleet/database.ts', 'fleet/readers.ts', 'disk/files.ts', 'settings/', 'time/', ...ground, 'node'],
    ],
  ],
  // Commands open the journal, sinks and sources as the daemon does, perform its operations, and start it.
  ['cli/', importsOfCommands],
  ['cli/commands/run.ts', [...importsOfCommands, 'daemon/collect-when-idle.ts']],
  // Counts uids in a temporary database, because memory may not hold them.
  ['cli/commands/compare/tally.ts', [...ground, 'journal/', 'better-sqlite3', 'node']],
  ['main.ts', ['cli/', 'connect/names.ts', 'time/deadline.ts', 'errors/errors.ts', 'disk/version.ts', 'node']],
  [
    'reference/',
    ['reference/', 'better-sqlite3', 'jose', '@peculiar/x509', '@rapideditor/country-coder', 'reflect-metadata', 'zod', 'node'],
  ],
];

function importsOfSink(name) {
  return [
    `sink/${name}/`,
    'sink/define.ts',
    'encode/index.ts',
    'connect/',
    'time/deadline.ts',
    'record/json-object.ts',
    'settings/',
    ...ground,
    'zod',
    'node',
    ...(importsOfOneSink[name] ?? []),
  ];
}

const escaped = (path) => path.replaceAll('.', '\\.');
const isBuiltIn = (name) => name === 'node' || name.startsWith('node:');
const isFile = (name) => /\/$|\.ts$/.test(name);
const isPackage = (name) => !isBuiltIn(name) && (name.startsWith('@') || !isFile(name));

function pathOf(name) {
  return isPackage(name) ? `^node_modules/(@types/)?${escaped(name)}` : `^src/${escaped(name)}`;
}

const forbidden = rows.flatMap(([room, allowed]) => {
  // Files with a separate row.
  const others = rows.map(([path]) => path).filter((path) => path !== room && path.startsWith(room));
  const from = { path: `^src/${escaped(room)}`, ...(others.length > 0 && { pathNot: others.map((path) => `^src/${escaped(path)}`) }) };
  const paths = allowed.filter((name) => !isBuiltIn(name)).map(pathOf);
  const modules = allowed.filter((name) => name.startsWith('node:')).map((name) => `^${name.slice('node:'.length)}$`);
  return [
    { name: `imports of ${room}`, severity: 'error', from, to: { pathNot: paths, dependencyTypesNot: ['core'] } },
    ...(allowed.includes('node')
      ? []
      : [{ name: `built-in modules of ${room}`, severity: 'error', from, to: { dependencyTypes: ['core'], pathNot: modules } }]),
  ];
});

export default {
  forbidden: [
    { name: 'no circle of files', severity: 'error', from: {}, to: { circular: true } },
    // The client of the reference service is generated by its test.
    {
      name: 'nothing that cannot be found',
      severity: 'error',
      from: { pathNot: '^test/fixtures/reference-client/' },
      to: { couldNotResolve: true },
    },
    ...floors.slice(0, -1).map((floor, at) => ({
      name: `nothing above ${floor}`,
      severity: 'error',
      from: { path: `^src/${floor}` },
      to: { path: floors.slice(at + 1).map(pathOf) },
    })),
    ...forbidden,
    {
      name: 'end-to-end tests start programs and speak their protocols',
      severity: 'error',
      from: { path: '^test/e2e/' },
      to: { path: '^(src|bench)/' },
    },
    {
      name: 'generators of content read the rules only',
      severity: 'error',
      from: { path: '^tools/' },
      to: { path: '^(src|test|bench)/', pathNot: '^src/detections/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
};
