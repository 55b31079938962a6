/** Options of the benchmarks: their values, and one clear line for each wrong one. */
import { describe, expect, test } from 'vitest';
import { flag, integerFromZero, oneOf, positiveInteger, positiveNumber, readOptions, someOf, text } from '../../../bench/options.ts';

const table = {
  records: positiveInteger(5),
  seconds: positiveNumber(10),
  windows: integerFromZero(3),
  to: someOf(['file', 'relp']),
  only: oneOf(['journal', 'file'], undefined),
  dir: text('a directory'),
  save: flag,
};

test('an option has its default, or the value of the command line', () => {
  const initial = { records: 5, seconds: 10, windows: 3, to: ['file', 'relp'], only: undefined, dir: undefined, save: false };
  expect(readOptions(table, [])).toEqual(initial);
  const args = ['--records', '20', '--seconds=0.5', '--windows', '0', '--to', 'relp', '--only', 'file', '--dir', '/tmp/x', '--save'];
  expect(readOptions(table, args)).toEqual({
    records: 20,
    seconds: 0.5,
    windows: 0,
    to: ['relp'],
    only: 'file',
    dir: '/tmp/x',
    save: true,
  });
});

describe('a wrong option is refused', () => {
  test.each([
    [['--records', '0'], '--records "0" is not a positive integer'],
    [['--records', 'x'], '--records "x" is not a positive integer'],
    [['--records', '1.5'], '--records "1.5" is not a positive integer'],
    [['--records', '1e3'], '--records "1e3" is not a positive integer'],
    [['--records', '-1'], '--records "-1" is not a positive integer'],
    [['--records', '9007199254740993'], '--records "9007199254740993" is not a positive integer'],
    [['--records'], '--records needs a value: a positive integer'],
    [['--records', '--save'], '--records "--save" is not a positive integer'],
    [['--seconds', '0'], '--seconds "0" is not a positive number'],
    [['--seconds', 'soon'], '--seconds "soon" is not a positive number'],
    [['--windows', '-1'], '--windows "-1" is not a positive integer or 0'],
    [['--to', 'file,nowhere'], '--to "file,nowhere" is not one or more of file,relp'],
    [['--to', ''], '--to "" is not one or more of file,relp'],
    [['--only', 'nonsense'], '--only "nonsense" is not one of journal, file'],
    [['--dir='], '--dir "" is not a directory'],
    [['--save=no'], '--save has no value, not "no"'],
  ])('%j', (args, message) => {
    expect(() => readOptions(table, args)).toThrow(message);
  });

  test.each([
    [['nonsense'], 'unexpected "nonsense"; accepted: --records (a positive integer), --save'],
    [['--nonsense', '1'], 'unknown option --nonsense; accepted: --records (a positive integer), --save'],
    [['-x'], 'unknown option -x; accepted: --records (a positive integer), --save'],
    [['--toString'], 'unknown option --toString; accepted: --records (a positive integer), --save'],
    [['--', 'x'], 'unexpected "--"; accepted: --records (a positive integer), --save'],
  ])('%j', (args, message) => {
    expect(() => readOptions({ records: positiveInteger(5), save: flag }, args)).toThrow(message);
  });
});
