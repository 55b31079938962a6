/**
 * A connection to the state whose every statement throws what `translate` makes of an error of SQLite: damage is found wherever something is
 * read, and those places are too many for each to expect it.
 */
import Database from 'better-sqlite3';
import type { Statement } from 'better-sqlite3';

/** Errors of the program, such as a wrong number of parameters, are not SQLite's, and pass as they are. */
export function connect(file: string, options: Database.Options, translate: (thrown: unknown) => unknown): Database.Database {
  const told = (thrown: unknown): unknown => (thrown instanceof Database.SqliteError ? translate(thrown) : thrown);
  const telling =
    <Given extends unknown[], Result>(operation: (...given: Given) => Result) =>
    (...given: Given): Result => {
      try {
        return operation(...given);
      } catch (thrown) {
        throw told(thrown);
      }
    };
  const statement = (given: Statement): Statement => {
    const iterate = given.iterate.bind(given);
    return Object.assign(given, {
      get: telling(given.get.bind(given)),
      all: telling(given.all.bind(given)),
      run: telling(given.run.bind(given)),
      *iterate(...parameters: unknown[]) {
        try {
          yield* iterate(...parameters);
        } catch (thrown) {
          throw told(thrown);
        }
      },
    });
  };
  const db = telling(() => new Database(file, options))();
  const prepare = telling(db.prepare.bind(db));
  return Object.assign(db, {
    prepare: (sql: string) => statement(prepare(sql)),
    exec: telling(db.exec.bind(db)),
    pragma: telling(db.pragma.bind(db)),
  });
}
