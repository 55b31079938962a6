/** A connection to the state whose statements translate SQLite errors. Damage may appear in any read, and no caller has to expect it. */
import Database from 'better-sqlite3';
import type { Statement } from 'better-sqlite3';

/**
 * Errors of the program, for example a wrong number of parameters, are not translated. `prepare`
 * compiles each text once: a query that runs for each of many sources costs most in its compilation.
 * So callers of one text share its statement: none may change the form of its rows (`pluck`, `raw`).
 */
export function connect(file: string, options: Database.Options, translate: (thrown: unknown) => unknown): Database.Database {
  const translated = (thrown: unknown): unknown => (thrown instanceof Database.SqliteError ? translate(thrown) : thrown);
  const translating =
    <Given extends unknown[], Result>(operation: (...given: Given) => Result) =>
    (...given: Given): Result => {
      try {
        return operation(...given);
      } catch (thrown) {
        throw translated(thrown);
      }
    };
  const statement = (given: Statement): Statement => {
    const iterate = given.iterate.bind(given);
    return Object.assign(given, {
      get: translating(given.get.bind(given)),
      all: translating(given.all.bind(given)),
      run: translating(given.run.bind(given)),
      *iterate(...parameters: unknown[]) {
        try {
          yield* iterate(...parameters);
        } catch (thrown) {
          throw translated(thrown);
        }
      },
    });
  };
  const db = translating(() => new Database(file, options))();
  const compile = translating(db.prepare.bind(db));
  const statements = new Map<string, Statement>();
  const prepare = (sql: string): Statement => {
    const kept = statements.get(sql);
    // A statement whose rows are being read cannot run again.
    if (kept !== undefined && !kept.busy) return kept;
    const prepared = statement(compile(sql));
    statements.set(sql, prepared);
    return prepared;
  };
  return Object.assign(db, {
    prepare,
    exec: translating(db.exec.bind(db)),
    pragma: translating(db.pragma.bind(db)),
  });
}
