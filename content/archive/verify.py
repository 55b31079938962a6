#!/usr/bin/env python3
"""Verifies an archive of Waybill, without Waybill. It needs Python 3.9 or newer with its standard library, and openssl for --timestamp-ca. A key file has one key a
line: name+id+base64 (C2SP signed-note). --since is a checkpoint that was stored elsewhere. --former is the archive whose last checkpoint the first line names.
--timestamp-ca has the roots of time-stamping authorities in PEM. --witness is a key file of witnesses, and --quorum the number of them that must have cosigned.
--proof is a file of "waybill archive prove" or "export", checked without the archive. It ends at the first altered checkpoint or segment. Exit codes: 0 intact;
1 altered or missing; 2 wrong usage; 3 something cannot be proven."""
import argparse, base64, bisect, calendar, collections, datetime, functools, hashlib, itertools, json, math, os, pathlib, re, struct, subprocess, sys, tempfile, time, zlib

TIME = re.compile(r'([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?')
CHECKPOINT = re.compile('([^\n]+)\n(0|[1-9][0-9]{0,14})\n([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)')
SIGNATURE = re.compile('\u2014 ([^\\s+]+) ([A-Za-z0-9+/]{7,}={0,2})')
PROOF = re.compile('"waybill-proof/[12]"')
PART = re.compile(r'(checkpoints|segments|tile|keys|timestamps|cosignatures)(/|\Z)')
KNOWN = re.compile(r'(?as)checkpoint|(keys|tile)/.*|segments/\d{16}-[0-9a-f]{64}\.ndjson\.gz|checkpoints/(?!0{10})\d{10}|timestamps/(?!0{10})\d{10}\.tsr'
                   r'|cosignatures/(?!0{10})\d{10}-[0-9a-f]{8}')
RECORD = re.compile(rb'\{"kind":"record","seq":(0|[1-9]\d{0,14}),"uid":"([\w-]{21}[AQgw])","source":"([ !#-\[\]-~]*)","received":"(\d{4}-\d\d-\d\dT'
                    rb'\d\d:\d\d:\d\d\.\d{6}Z)","late":(?:true|false),"salt":"[\w-]{22}","record":')
MINUTE, HOUR, DAY, BUCKET = 60_000_000, 3_600_000_000, 86_400_000_000, 600_000_000
MAX_TEXT, MAX_LINE, MAX_FILE, MAX_FILES = 1 << 28, 1 << 20, 2_000_000, {'segments': 300_000_000, 'timestamps': 1 << 16}
BLANK = re.compile('[\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]*')  # As ECMAScript has white space.
WRONG = (LookupError, TypeError, AttributeError, ValueError, RecursionError, struct.error, zlib.error)

sha256 = lambda data: hashlib.sha256(data).digest()

class Wrong(ValueError, argparse.ArgumentTypeError): pass  # argparse prints the reason of this one.

def need(condition, reason):
    if not condition: raise Wrong(reason)

class Directory(type(pathlib.Path())):
    def read(self, path):  # None for anything but a regular file, for what a link leads to, and for a file that is larger than any of an archive.
        file, most = self / path, MAX_FILES.get(path.partition('/')[0], MAX_FILE)
        return file.read_bytes() if file.is_file() and file.resolve() == self.resolve() / path and file.stat().st_size <= most else None

    def list(self, folder=''):  # No folder of an archive is a link, or lies this deep. Another one may be unreadable, such as lost+found.
        for found in sorted(os.scandir(self / folder), key=lambda found: found.name):  # A daemon may add files: segments come after checkpoints.
            name, is_folder = folder + found.name, found.is_dir(follow_symlinks=False) and folder.count('/') < 9
            yield from self.list(name + '/') if is_folder and (PART.match(name) or os.access(found, os.R_OK | os.X_OK)) else [name]

def join(hashes):
    middle = 1 << max(len(hashes) - 1, 1).bit_length() - 1
    return hashes[0] if len(hashes) == 1 else sha256(b'\x01' + join(hashes[:middle]) + join(hashes[middle:]))

def tile_path(kind, index, width):
    groups = re.findall('...', str(index).zfill(-(-len(str(index)) // 3) * 3))
    return '/'.join(['tile', kind] + ['x' + group for group in groups[:-1]] + groups[-1:]) + ('' if width == 256 else '.p/%d' % width)

class Log(list):  # The tree of RFC 6962 in tiles of 256 hashes (C2SP tlog-tiles): a row of entries, a row of leaves, then roots of the tiles below.
    def add(self, entry):
        self[0].append(struct.pack('>H', len(entry)) + entry)
        found, level = sha256(b'\x00' + entry), 1
        while found:
            self[level].append(found)
            found, level = None if len(self[level]) % 256 else join(self[level][-256:]), level + 1
            self += [[]] if level == len(self) else []

    def root(self):
        part = []
        for row in self[1:]: part = [join(tail)] if (tail := row[len(row) - len(row) % 256:] + part) else []
        return part[0] if part else sha256(b'')

def unbase64(text):
    need(text and base64.b64encode(data := base64.b64decode(text, validate=True)).decode() == text, 'it is not base64')
    return data

def read_key(text, kind=1):  # Of kind 1 the key of an archive, of kind 4 the key of a witness.
    found = re.fullmatch(r'([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})', text)
    is_key = found and (data := base64.b64decode(found[3]))[0] == kind and sha256(found[1].encode() + b'\n' + data)[:4].hex() == found[2]
    need(is_key, '"%s" is not name+id+base64 of an Ed25519 key of type %d' % (text, kind))
    return found[1], found[2], data[1:], text.encode() + b'\n', kind

def openssl(command, at=0, **files):  # Runs openssl in a folder with these files; {} stands for a time. Returns what it prints.
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items(): pathlib.Path(folder, name).write_bytes(data)
        return subprocess.run(['openssl', *command.format(int(at)).split()], cwd=folder, capture_output=True).stdout.decode(errors='replace')

P, ORDER = 2 ** 255 - 19, 2 ** 252 + 27742317777372353535851937790883648493  # Of the field, and of the base point, of Ed25519 (RFC 8032, section 5.1).
D, BASE = -121665 * pow(121666, -1, P) % P, b'\x58' + b'\x66' * 31

def add(a, b):  # Two points of the curve as (X, Y, Z, T): x is X/Z, y is Y/Z, and x*y is T/Z.
    minus, plus, product, twice = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0]), 2 * D * a[3] * b[3], 2 * a[2] * b[2]
    return (plus - minus) * (twice - product) % P, (twice + product) * (plus + minus) % P, (twice - product) * (twice + product) % P, (plus - minus) * (plus + minus) % P

@functools.cache
def multiples(data):  # Row i has j * 256**i times the point of these bytes: y, and the lowest bit of x (section 5.1.3).
    y = int.from_bytes(data, 'little') % 2 ** 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, P // 4, P) % P
    need(x * x % P == square, 'the key is not a point of the curve')
    x, rows = x if x % 2 == data[31] >> 7 else P - x, []
    for _ in range(32):
        point = add(rows[-1][255], rows[-1][1]) if rows else (x, y, 1, x * y % P)
        rows.append(list(itertools.accumulate([point] * 255, add, initial=(0, 1, 1, 0))))
    return rows

@functools.cache
def is_signed(key, text, signature):  # R is S times the base point, less the hash times the point of the key (section 5.1.7).
    if len(signature) != 64 or (s := int.from_bytes(signature[32:], 'little')) >= ORDER: return False
    total, hashed = (0, 1, 1, 0), int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), 'little') % ORDER
    for number, point in (s, BASE), (hashed, key[:31] + bytes([key[31] ^ 128])):
        for digit, row in zip(number.to_bytes(32, 'little'), multiples(point)): total = add(total, row[digit])
    x, y = (each * pow(total[2], -1, P) % P for each in total[:2])
    return (y | x % 2 << 255).to_bytes(32, 'little') == signature[:32]

def is_valid(key, text, signature):  # A witness signs the time too, which precedes the signature: seconds in 8 bytes (C2SP tlog-cosignature).
    if key[4] == 1: return is_signed(key[2], text, signature)
    at = int.from_bytes(signature[:8], 'big')
    return len(signature) == 72 and 0 < at < 8_993_721_600 and is_signed(key[2], b'cosignature/v1\ntime %d\n' % at + text, signature[8:])

def read_checkpoint(data, keys):  # Origin, size, root, the known keys that signed them (its name is the only origin of a key), and the times and keys of cosignatures.
    text, separator, signatures = data.decode().rpartition('\n\n')
    lines = list(map(SIGNATURE.fullmatch, signatures.split('\n')[:-1]))
    is_note = not re.search('[\x00-\x09\x0b-\x1f]', text + signatures) and separator and signatures.endswith('\n') and all(lines) and len(lines) <= 64
    need(is_note, 'it is not a signed note')
    signatures = [(line[1], unbase64(line[2])) for line in lines]
    known = [(key, signature) for name, signature in signatures for key in keys if key[:2] == (name, signature[:4].hex())]
    need(all(is_valid(key, (text + '\n').encode(), signature[4:]) for key, signature in known), 'a signature of a known key is invalid')
    need(found := CHECKPOINT.fullmatch(text), 'it is not a checkpoint')
    times = sorted(((int.from_bytes(signature[4:12], 'big'), key) for key, signature in known if key[4] == 4), reverse=True)
    return found[1], int(found[2]), unbase64(found[3]), sorted(key[:2] for key, _ in known if key[4] == 4 or key[0] == found[1]), times

def moment(text):  # Microseconds since 1970, cut, and the text in UTC with all digits; None for what is not a time. A leap second counts as :59.999999.
    try:
        clock, fraction, zone = TIME.fullmatch(text).groups()
        found = datetime.datetime.fromisoformat(re.sub(':60$', ':59', clock) + (zone or 'Z').replace('Z', '+00:00')).astimezone(datetime.timezone.utc)
    except (AttributeError, TypeError, ValueError, OverflowError): return None
    at = int(found.timestamp()) * 1_000_000 + (999_999 if clock.endswith(':60') else int((fraction or '')[:6].ljust(6, '0')))
    return (at, found.isoformat()[:17] + clock[17:] + ('.' + (fraction or '')).rstrip('0').rstrip('.')) if 0 <= at < 8_993_721_600_000_000 and clock[11:13] < '24' else None

micros = lambda text: (moment(text) or [None])[0]
depth = lambda value: 1 + max(map(depth, value.values() if type(value) is dict else value), default=0) if type(value) in (dict, list) else 0
whole = lambda digits: float(digits) if float(digits) % 1 else int(float(digits))  # JSON allows 1.0 for 1, and any number of digits.
load = functools.partial(json.loads, parse_constant={}.__getitem__)
parse = functools.partial(load, parse_int=lambda digits: int(digits[:99]), parse_float=whole)

once = lambda pairs: need(len(dict(pairs)) == len(pairs), 'a key is there twice') or dict(pairs)

encode = lambda text: re.sub('[\ud800-\udfff]', '\ufffd', text).encode()

class Digits(str): pass  # A number of a record, as it is written there.

def part(value):  # The text of a field, after its length.
    if value is None: return b'\xff' * 4
    if type(value) is Digits:
        number = float(value)
        value = str(int(number)) if abs(number) < 1 << 53 and number % 1 == 0 and (number or value[0] != '-') else value
    data = encode(json.dumps(value) if type(value) is bool else value)
    return struct.pack('>I', len(data)) + data

def read_record(source, text):  # Its time, its uid by docs/formats.md ("Identity"), and whether a key is there twice; None for what cannot be told.
    twice = []
    pairs = lambda found: twice.append(len(dict(found)) < len(found)) or dict(found)
    try:
        record = load(text.decode('utf-8', 'replace'), object_pairs_hook=pairs, parse_int=Digits, parse_float=Digits)
        need(type(record) is dict and depth(record) <= 64, 'it is not a record')
    except WRONG: return None, None, False
    number, at, *others = map(record.get, ('logId', 'logTimestamp', 'actionAttempted', 'result', 'resultReason'))
    at, text = moment(at) or (None, at)
    is_told = number is not None and not (type(number) is str and BLANK.fullmatch(number)) and not any(type(each) in (dict, list) for each in (number, text, *others))
    return at, sha256(b''.join(map(part, ('waybill/1', source, number, text, *others))))[:16] if is_told else None, any(twice)

FORM, FORMS = re.compile(r'(\w+):(\w+)([?*]?)'), {  # ? may be null, * may be absent
    'ledger': 'seq:count source:text from:time to:time state:state records:count digest:digest? reason:text?', 'operation': 'seq:count at:time',
    'position': 'seq:count after:count journal:text sink:text* chain:digest at:time completeSince:time sources:texts? filtered:flag timestamp:stamp* former:text*'}
CHECKS = {
    'text': lambda value: type(value) is str, 'flag': lambda value: type(value) is bool, 'time': lambda value: micros(value) is not None,
    'texts': lambda value: type(value) is list and {str}.issuperset(map(type, value)), 'digest': re.compile('[0-9a-f]{64}').fullmatch,
    'count': lambda value: type(value) is int and 0 <= value < 1 << 53, 'state': 'proven gap accepted suspended resumed'.split().__contains__,
    'stamp': lambda value: CHECKS['count'](value['checkpoint']) and CHECKS['digest'](value['sha256'])}

def read_line(data):
    found, uid = RECORD.match(data[:256]), bytes(16)
    if found and data.endswith(b'}'):
        uid, source = base64.urlsafe_b64decode(found[2] + b'=='), found[3].decode()
        line = {'kind': 'record', 'seq': int(found[1]), 'uid': uid, 'source': source, 'received': found[4].decode()}
        line['time'], line['own uid'], line['twice'] = read_record(source, data[found.end():-1])
    else:
        line = parse(data.decode('utf-8', 'replace')) if len(data) <= MAX_LINE else {}
        for name, check, mark in FORM.findall(FORMS[depth(line) <= 64 and line['kind']]):
            need((name not in line if mark == '*' else mark and line[name] is None) or CHECKS[check](line[name]), 'it is not a line of an archive')
    if line['kind'] == 'ledger': line.update({'name': '%(source)s %(from)s/%(to)s' % line, 'from': micros(line['from']), 'to': micros(line['to'])})
    return line, struct.pack('>B16sQ32s', ['', 'record', 'ledger', 'operation', 'position'].index(line['kind']), uid, line['seq'], sha256(data))

def root_of(found, index, size, hashes):  # The root of a tree by an inclusion proof (RFC 9162, section 2.1.3.2), which this takes from its end.
    if size == 1: return found
    middle, sibling = 1 << (size - 1).bit_length() - 1, hashes.pop()
    inner = root_of(found, index % middle, middle if index < middle else size - middle, hashes)
    return sha256(b'\x01' + (inner + sibling if index < middle else sibling + inner))

def stamp_time(stamp, content, authorities):  # When an authority stamped this content, or None; and whether this is proven at another time.
    check = lambda at: 'Verification: OK' in openssl('ts -verify -in stamp -data content -CAfile ca -attime {}', at, stamp=stamp, content=content, ca=authorities)
    text = re.search(r'Time stamp: (.{15})[.\d]* (\d{4}) GMT\n', openssl('ts -reply -text -in stamp', stamp=stamp).rpartition('TST info:')[2])
    at = text and calendar.timegm(time.strptime(' '.join(text.groups()), '%b %d %H:%M:%S %Y'))
    return at if text and check(at) else None, check

def check_proof(data, keys):  # Its line, the number of this line, the size of the tree, whether a known key signed it, and what may date it.
    proof = parse(data.decode('utf-8', 'replace') if len(data) < MAX_TEXT else '', object_pairs_hook=once)
    hashes, entry, index = list(map(unbase64, proof['hashes'])), unbase64(proof['entry']), proof['index']
    _, size, root, signers, times = read_checkpoint(proof['checkpoint'].encode(), keys)
    stamp = unbase64(proof.pop('timeStamp')) if proof['format'] == 'waybill-proof/2' else None
    line = unbase64(proof['lineBase64']) if 'lineBase64' in proof else proof['line'].encode()  # A record may have bytes that are not UTF-8.
    is_of_line = len(proof) == 6 and type(proof['hashes']) is list and PROOF.fullmatch('"%s"' % proof['format']) and b'\n' not in line and read_line(line)[1] == entry
    is_leaf = CHECKS['count'](index) and index < size and all(len(each) == 32 for each in hashes)
    need(is_of_line and is_leaf and root_of(sha256(b'\x00' + entry), index, size, hashes) == root and not hashes, 'it is no proof')
    return line, index + 1, size, {key[:2] for key in keys if key[4] == 1} & {*signers}, (stamp, proof['checkpoint'].encode()), sorted({key: at for at, key in times}.values())

STATED = {'record': 'logTimestamp actionAttempted result', 'ledger': 'source from to state records', 'operation': 'at actor operation', 'position': 'at seq'}

def statement(data):  # What a line states: its kind, the uid of a record, and these fields.
    line, record = read_line(data)[0], RECORD.match(data[:256])
    try: value_of = parse((data[record.end():-1] if record else data).decode('utf-8', 'replace')).get
    except WRONG: value_of = {}.get  # A record may have any bytes: they are hashed, and not understood.
    texts = [str(each) if type(each) is str or CHECKS['count'](each) else '-' for each in map(value_of, STATED[line['kind']].split())]
    return ', '.join([line['kind'], *([record[2].decode()] if record else []), *texts]) + ' (it has a key twice, and the last one counts)' * bool(record and line['twice'])

def order_of(line, origin, number):  # The operation of this line on this archive, its lines, and its reason or case; None for another one.
    try:
        detail, kind = line['detail'], line['operation']
        name = detail['reason' if kind == 'archive prune' else 'case']
        need(detail['archive'] == origin and type(name) is str and kind in ('archive prune', 'archive hold', 'archive release'), 'it is another')
        if kind == 'archive release': return kind, (), name
        ranges = [(each['first'], each['last']) for each in detail['lines']]
        is_range = lambda last, first, end: CHECKS['count'](first) and CHECKS['count'](end) and last < first <= end and (end < number or kind == 'archive hold')
        need(all(is_range(last, *each) for (_, last), each in zip([(0, 0)] + ranges, ranges)), 'it is no range')
        need(None not in map(micros, {detail['from'], detail['to']} - {None} if kind == 'archive hold' else [detail['before']]), 'it has no time')
        return kind, ranges, name
    except WRONG: return None

def newest_time(lines, at):  # By the clock of the service, which may be ahead of the one that dates positions. A time beyond two days is wrong.
    times = [line['from'] + 1 if line['kind'] == 'ledger' else line['time'] for line in lines if line['kind'] in ('ledger', 'record')]
    return max(at, at, *(time for time in times if time is not None and time < at + 2 * DAY))

text_of_lines = lambda numbers: 'line %d' % numbers[0] + (' and %d more' % (len(numbers) - 1) if numbers[1:] else '')
counted = lambda number, one, more=None: '{:,} {}'.format(number, one if number == 1 else more or one + 's')
iso = lambda at: datetime.datetime.fromtimestamp(at // 1_000_000, datetime.timezone.utc).isoformat()[:19] + 'Z'

class Verification:
    def __init__(self, store, keys, authorities=None, now=None, removed_before=None, begin=None, end=None, within=None, key_until=None, fresh_since=None,
                 witnesses=(), quorum=None):
        self.store, self.keys, self.authorities, self.now = store, keys, authorities, now or time.time()
        self.removed_before, self.begin, self.end, self.key_until, self.fresh_since = removed_before, begin, end, key_until, fresh_since  # Microseconds since 1970.
        self.within, self.archived, self.tokens, self.dates, self.age, self.sizes = 2 * DAY if within is None else within, [], [], [], None, {}
        self.findings, self.log, self.segments, self.spans, self.stamped, self.missing, self.orders = [], Log([[], []]), {}, {}, {}, [], []
        self.witnesses, self.quorum, self.cosigned = list(witnesses), quorum or len(witnesses), None
        self.records, self.windows, self.repeated, self.position, self.former, self.selections, self.is_filtered = {}, {}, {}, None, None, [], False
        self.sources, self.skipped, self.begins_at, self.oldest, self.latest, self.counts = set(), set(), -1, None, 0, collections.Counter()
        self.find = lambda *finding: self.findings.append(finding)

    def checkpoint(self, name, data, more=()):
        try:
            found = read_checkpoint(data or b'', self.keys + list(more))
            found[3] or self.find('unproven', name, 'no key of --key signed it')
            return found
        except ValueError as error: return self.find('altered', name, 'it is missing' if data is None else str(error))

    def date(self, stamp, cosigned):  # When others confirmed a proof, if this was asked for. No later time stamp covers the one in a proof.
        at, check = stamp_time(*stamp, self.authorities) if self.authorities and stamp[0] else (None, None)
        need(not self.authorities or at is not None and check(self.now), 'it has no time stamp that --timestamp-ca proves today')
        need(len(cosigned) >= self.quorum, '%d of %d witnesses cosigned its checkpoint, fewer than --quorum %d' % (len(cosigned), len(self.witnesses), self.quorum))
        return min(([] if at is None else [at]) + cosigned[self.quorum - 1:][:bool(self.witnesses)], default=None)

    def prove(self, file, show=lambda number, line, at, size, date: None):
        count, lines = 0, iter(functools.partial(file.readline, MAX_TEXT), b'')
        for count, line in enumerate(lines, 1):
            severity, reason = 'altered', 'it does not prove that the archive has its line'
            if not (is_proof := PROOF.search(line.decode('latin-1'))): severity, reason = 'unproven', 'it is not a proof of the format waybill-proof/1 or 2'
            try:
                *found, signers, stamp, cosigned = check_proof(line, self.keys + self.witnesses)
                severity = 'unproven'
                need(signers, 'no key of --key signed the checkpoint')
                show(count, *found, self.date(stamp, cosigned))
            except WRONG as error: self.find(severity, 'proof %d' % count, str(error) if is_proof and severity == 'unproven' else reason)
        count or self.find('unproven', '--proof', 'it has no proof')
        return '%s in the signed archive, of %s' % (counted(count and count - len(self.findings), 'line is', 'lines are'), counted(count, 'proof'))

    def run(self, since=()):  # Returns what it checked, and how many lines the checkpoint from elsewhere confirms.
        copy, names = self.store.read('checkpoint'), {*self.store.list()}  # A daemon may add files meanwhile: a second list has what this one lacks.
        known = lambda folder: sorted(name for name in names if name.startswith(folder) and KNOWN.fullmatch(name))
        len(stored := known('checkpoints/')) == int('0' + ''.join(stored[-1:])[12:]) or names.update(filter(stored[-1].__gt__, self.store.list()))
        for name in sorted({re.sub('^index/.*', 'index/', name) for name in names if not KNOWN.fullmatch(name)}): self.find('note', name, 'it was not checked, and is no evidence')
        signed, steps, count, present, replaced, last = [(None, 0, None, [])], [], 0, set(), set(), 0
        for number in [int(name[12:]) for name in known('checkpoints/')] or [1]:
            number == last + 1 or steps.append(self.find('altered', 'checkpoints/%010d' % (last + 1), 'it is missing'))
            name, last = 'checkpoints/%010d' % number, number
            found = self.checkpoint(name, self.store.read(name))
            steps.append(found and found[:4] + (name,))
            valid = set(found[3]) - replaced if found else set()
            if found and found[3] and (not valid or found[0] != (signed[-1][0] or found[0]) or found[1] <= signed[-1][1]):
                steps[-1] = self.find('altered', name, 'it does not continue the checkpoint before')
            elif valid:
                signed.append(found)
                count = len(steps)
                not present or valid & present or self.find('unproven', name, 'no checkpoint links its key to the one before')
                present, replaced = valid - present or valid, replaced | present - (valid - present or valid)  # The former key ends.
        used = {key for found in signed[1:] for key in found[3]}
        if not used and stored: self.find('unproven', '--key', 'no key of --key signed a checkpoint: this is not the archive of these keys')
        for key in [key for key in self.keys if used and key[0] == signed[-1][0] and key[:2] not in used]:  # A file may have keys of more archives.
            self.find('unproven', '--key', '"%s+%s" signed no checkpoint: the archive may have been cut before the change to this key' % key[:2])
        self.spans = {key[:2]: [found[1] for found in signed if key[:2] in found[3]] for key in self.keys if key[:2] in used}
        signed, self.sizes = [found[:3] for found in signed], {step[4]: step[1] for step in steps if step and step[3]}
        copy = Verification(self.store, self.keys).checkpoint('checkpoint', copy)
        self.copy = copy[:3] if copy and copy[3] else (None, 0, None)
        if self.copy[1] > signed[-1][1]: self.find('altered', 'checkpoints/%010d' % (last + 1), 'it is missing: "checkpoint" is signed for %d lines' % self.copy[1])
        elif self.copy[0] == signed[-1][0] and self.copy not in signed: self.find('altered', 'checkpoint', 'it is signed, and the archive does not contain it')
        elif self.copy != signed[-1] or not signed[1:]: self.find('note', 'checkpoint', 'it is not a copy of the newest checkpoint, and no evidence')
        keys = {('keys/%s+%s' % key[:2], key[3]) for key in self.keys}
        self.findings += [('note', name, 'it is not one of the keys of --key, and no evidence') for name in known('keys/') if (name, self.store.read(name)) not in keys]
        for name in known('segments/'): self.segments.setdefault(int(name[9:25]), []).append(name)
        self.follow_all(steps[:count])
        self.check_missing()
        self.check_stamps({*known('timestamps/'), *self.stamped}, len(self.findings))
        self.check_cosignatures(known('cosignatures/'), signed)
        self.check_dates('timestamps/' if self.authorities else 'cosignatures/')
        self.check_windows()
        confirmed, size = 0, len(self.log[0])
        for elsewhere in [self.checkpoint('--since', note, self.witnesses) for note in since]:
            if elsewhere and elsewhere[3] and elsewhere[:3] not in signed: self.find('altered', '--since', 'the archive does not contain this checkpoint')
            elif elsewhere and elsewhere[3]: confirmed = max(confirmed, elsewhere[1])
        dated = max([confirmed, *(lines for at, lines in self.dates if at < (self.key_until or 0))])
        if self.key_until is not None and dated < size:
            self.find('unproven', '--key-until', 'no time stamp, cosignature or --since dates the last %d of %d lines before %s' % (size - dated, size, iso(self.key_until)))
        for name, newest in ('line', self.archived[-1:]), ('time stamp', self.tokens[-1:]), ('cosignature', [self.cosigned[2:]] if self.cosigned else []):
            is_fresh = self.fresh_since is None or not newest or self.fresh_since <= newest[0][0] <= self.now * 1_000_000 + MINUTE
            is_fresh or self.find('unproven', '--fresh', 'the newest %s is of %s' % (name, iso(newest[0][0])))
        return confirmed

    def check_former(self, store):  # The archive whose key was lost: it has the checkpoint that the first line of this one names.
        if self.former is None: return store and self.find('unproven', '--former', 'the first line of the archive names no former archive')
        if not store: return self.find('note', '--former', 'the first line names the last checkpoint of a former archive, which was not checked')
        (other := Verification(store, self.keys, self.authorities, self.now, self.removed_before, within=self.within)).run([encode(self.former)])
        self.findings += [(severity, '--former', '%s: %s' % (name.replace('--since', 'the first line'), reason)) for severity, name, reason in other.findings]

    def check_stamps(self, names, first, later=()):  # Valid at its time, and when a later one covers it, or now (RFC 4998). Only TST info is signed.
        for name in sorted(names, reverse=True):
            digest = (stamp := self.store.read(name)) is not None and sha256(stamp).hex()
            named, signed = self.stamped.get(name, (digest, math.inf))
            named == digest or self.find('altered', name, 'a signed line names another SHA-256' if digest else 'it is missing, and a signed line names it')
            if named != digest or not self.authorities: continue
            content = 'checkpoints/' + name[11:-4] in self.sizes and self.store.read('checkpoints/' + name[11:-4])
            at, check = stamp_time(stamp or b'', content, self.authorities) if content else (None, None)
            content or self.find('note', name, 'no key of --key signed its checkpoint: it is no evidence')
            content and at is None and self.find('unproven', name, 'it is no time stamp that --timestamp-ca proves')
            if at is None: continue
            later and later[0][1] < at and self.find('altered', later[0][2], 'its time is before that of "%s"' % name)
            covers = [other for number, other, _ in later if signed <= number]
            if not check((covers or [self.now])[0]): self.find('unproven', name, 'its certificate ended before another time stamp covered it')
            elif not covers and not check(self.now + 30 * 86400): self.find('note', name, 'its certificate ends within 30 days: another time stamp must cover it before')
            later = ((int(name[11:-4]), at, name), *later)
        self.findings[first:] = reversed(self.findings[first:])
        if not self.authorities and (unchecked := len(names) - len(self.findings[first:])): self.find('note', 'timestamps/', '%d time stamps were not checked (--timestamp-ca FILE)' % unchecked)
        if self.authorities and not later: self.find('unproven', 'timestamps/', 'no time stamp is valid')
        self.tokens = [(at * 1_000_000, self.sizes['checkpoints/' + name[11:-4]]) for _, at, name in later]
        self.dates += self.tokens

    def check_dates(self, name):  # Who writes an archive anew can have it dated only now: its lines are dated later than they say that they were archived.
        dates, first, waiting, early = sorted(self.dates, key=lambda date: date[1]), math.inf, math.inf, 0
        for at, _, size in reversed(self.archived if dates else []):
            while dates and dates[-1][1] >= size: first = min(first, dates.pop()[0])
            if first == math.inf: waiting = min(waiting, at)
            else: self.age, early = max(self.age or 0, first - at), max(early, at - first)
        if early > MINUTE: self.find('unproven' if early > 2 * DAY else 'note', name, 'lines were stamped or cosigned %d min before they were archived' % (early // MINUTE))
        if (self.age or 0) > self.within: self.find('unproven', name, 'lines were first stamped or cosigned %d h after they were archived' % (self.age // HOUR))
        if waiting < math.inf and self.archived[-1][0] - waiting > self.within:
            self.find('unproven', name, 'no time stamp or cosignature covers the lines that were archived since %s (--stamped-within)' % iso(waiting))

    def check_cosignatures(self, names, signed):  # A witness cosigns one history only: what it cosigned must be in the archive.
        if not self.witnesses: return names and self.find('note', 'cosignatures/', '%d cosignatures were not checked (--witness FILE)' % len(names))
        first, cosigned = {}, []
        for name in names:
            try: found = read_checkpoint(self.store.read(name) or b'', self.witnesses)
            except ValueError as error:
                self.find('unproven', name, str(error))
                continue
            if not found[4] or found[0] != signed[-1][0]:
                self.find('note', name, 'it is of another archive, and no evidence' if found[4] else 'no witness of --witness cosigned it: it is no evidence')
            elif found[:3] not in signed:
                self.find('altered', name, 'a witness cosigned a checkpoint of %d lines, and the archive does not contain it' % found[1])
            else: cosigned += [(at * 1_000_000, found[1], key) for at, key in found[4]]
        newest = {key: at for at, _, key in sorted(cosigned)}
        if len(newest) < self.quorum:
            return self.find('unproven', 'cosignatures/', '%d of %d witnesses cosigned this archive, fewer than --quorum %d' % (len(newest), len(self.witnesses), self.quorum))
        for at, lines, key in sorted(cosigned, key=lambda each: -each[1]):  # When the quorum had cosigned these lines or more.
            first[key] = min(at, first.get(key, at))
            if len(first) >= self.quorum: self.dates.append((sorted(first.values())[self.quorum - 1], lines))
        self.cosigned = len(newest), max(lines for _, lines in self.dates[len(self.tokens):]), sorted(newest.values(), reverse=True)[self.quorum - 1]

    def follow_all(self, steps):
        uncommitted = {name for names in self.segments.values() for name in names}
        for step in steps:
            size, is_absent = len(self.log[0]), True
            for name in self.segments.get(size, []) if step else []:
                data, unpacker = self.store.read(name), zlib.decompressobj(31)
                if data is None: continue  # Retention may have removed it meanwhile.
                is_absent = False
                try:
                    need(sha256(data).hex() == name[26:90], 'its name has another SHA-256')
                    text = unpacker.decompress(data, MAX_TEXT)
                    need(text.count(b'\n') == step[1] - size, 'it has another number of lines')
                    lines = list(map(read_line, text[:-1].split(b'\n')))
                except WRONG: continue
                is_whole = data[:4] == b'\x1f\x8b\x08\x00' and unpacker.eof and not unpacker.unused_data and text[-1:] == b'\n'
                if self.leads(step, (entry for _, entry in lines if is_whole)): break
            else:
                name = self.segments.get(size, ['segments/%016d-…' % size])[0]
                if not step or not is_absent or not self.leads(step, self.entries(size, step[1], steps[-1][1])):
                    return step and self.find('altered', name if step[3] else step[4], 'it is missing' if is_absent and step[3] else 'it is not as signed')
                self.missing.append({'name': name, 'first': size + 1, 'last': step[1], 'oldest': self.oldest, 'next': None})
                self.position, lines = None, None
                uncommitted -= {*self.segments.get(size, [])}
            self.compare_objects(size, step is steps[-1], step[:3] == self.copy)
            if lines is None: continue
            self.add_lines(name, [line for line, _ in lines], int(step[4][12:]), step[0])
            uncommitted.discard(name)
        self.findings += [('note', name, 'no checkpoint commits it: it is no evidence') for name in sorted(uncommitted)]

    def leads(self, step, entries):  # Adds entries to the log if they lead to the root of a checkpoint.
        size = len(self.log[0])
        for entry in entries: self.log.add(entry)
        if (len(self.log[0]), self.log.root()) == step[1:3]: return True
        for level, row in enumerate(self.log, -1): del row[size // 256 ** max(level, 0):]
        return False

    def entries(self, begin, end, newest):  # As the archive stores them, for lines that are missing.
        for index in range(begin // 256, -(-end // 256)):
            widths = [min(256, size - index * 256) for size in (end, newest)]  # A later bundle holds the entries of a partial one.
            bundle = next(filter(None, (self.store.read(tile_path('entries', index, width)) for width in widths)), b'')
            if len(bundle) not in [width * 59 for width in widths]: return
            starts = range(max(0, begin - index * 256) * 59, widths[0] * 59, 59)
            yield from (bundle[at + 2:at + 59] for at in starts if bundle[at:at + 2] == b'\0\x39')

    def compare_objects(self, before, is_newest, is_copied):  # The tiles and bundles that a log of this size has, and one of the size before has not.
        for level, row in enumerate(self.log, -1):
            for index in range(before // 256 ** (max(level, 0) + 1), -(-len(row) // 256)):
                part = row[index * 256:index * 256 + 256]
                name = tile_path('entries' if level < 0 else str(level), index, len(part))
                found = self.store.read(name)
                if found != b''.join(part) and (found is not None or (is_copied if is_newest else '.p/' not in name)):
                    self.find('altered', name, 'it is missing' if found is None else 'it differs from what the lines give')

    def add_lines(self, name, lines, number, origin):
        last = lines[-1]
        if last['kind'] != 'position': return self.find('altered', name, 'its last line is not a position')
        before = self.position or {**last, 'seq': last['after']}
        is_other = before['journal'] != last['journal'] or before['seq'] < last['after']
        if is_other or before['seq'] != last['after']: self.find('unproven' if is_other else 'altered', name, 'it does not continue the segment before')
        self.selections = [] if is_other or not self.position else self.selections
        filtered = self.position and self.position['filtered']
        self.position, self.is_filtered = last, self.is_filtered or last['filtered']
        self.selections += [last] if not self.selections or self.selections[-1]['sources'] != last['sources'] else []
        (stamp := last.get('timestamp')) and self.stamped.setdefault('timestamps/%010d.tsr' % stamp['checkpoint'], (stamp['sha256'], number))
        self.archived.append((micros(last['at']), number, len(self.log[0])))
        if len(self.log[0]) == len(lines): self.former = last.get('former')
        self.check_content(name, lines, micros(last['at']), not filtered and last['filtered'])
        self.orders += [(line, order) for at, line in enumerate(lines, len(self.log[0]) - len(lines) + 1) if line['kind'] == 'operation'
                        for order in [order_of(line, origin, at)] if order]
        for each in (missing := [each for each in self.missing if each['next'] is None]): each['next'] = micros(last['at'])
        if missing: self.begins_at = max(self.begins_at, newest_time(lines, micros(last['at'])))
        for line, seq in zip(lines, [last['after'], *(each['seq'] for each in lines)]):
            line['seq'] >= seq + (line['kind'] != 'position') or self.find('altered', name, 'entry %d follows entry %d' % (line['seq'], seq))
            if line['kind'] in ('record', 'ledger'): self.sources.add(line['source'])
            if line['kind'] == 'record' and line['time'] is not None:
                self.records.setdefault(line['source'], {}).setdefault(line['time'] // BUCKET, []).append((line['time'], line['uid']))
            elif line['kind'] == 'ledger' and line['from'] < line['to'] and line['to'] > (self.begin or 0) and line['from'] < (math.inf if self.end is None else self.end):
                if line['from'] < self.begins_at: self.skipped.add((line['source'], line['from']))
                else: self.windows[line['source'], line['from']] = line, self.count(line)

    def check_content(self, name, lines, at, is_filtered):  # Clocks are set, and differ: only more than two days leave something open.
        at < self.latest and self.find('unproven' if self.latest - at > 2 * DAY else 'note', name, 'a segment before it was archived later')
        self.oldest, self.latest = min(at, at if self.oldest is None else self.oldest), max(at, self.latest)
        records, later = [(number, line) for number, line in enumerate(lines, 1) if line['kind'] == 'record'], iso(at + 2 * DAY)[:19]
        any(line['received'] > later and (micros(line['received']) or 0) > at + 2 * DAY for _, line in records) and self.find('unproven', name, 'a record in it was received later')
        is_filtered and self.find('note', name, 'since then a filter of the sink leaves out records')
        forged = [number for number, line in records if line['own uid'] not in (None, line['uid'])]
        twice = [number for number, line in records if line['twice']]
        forged and self.find('altered', name, '%s: the uid is not that of the record' % text_of_lines(forged))
        twice and self.find('note', name, '%s: the record has a key twice, and the last one counts' % text_of_lines(twice))
        self.counts['without uid'] += sum(line['own uid'] is None for _, line in records)

    def check_missing(self):  # An operation removed a segment; or retention did, and each older one is missing too, or was due within three days.
        last = None
        for each in self.missing:
            covers = lambda first, last, each=each: first <= each['first'] and each['last'] <= last
            found = [(line, order) for line, order in self.orders if order[0] == 'archive prune' and any(covers(*lines) for lines in order[1])][:1]
            before = [order for _, order in self.orders[:self.orders.index(found[0]) if found else None]]
            held = [order for at, order in enumerate(before) if order[0] == 'archive hold' and any(first <= each['last'] and each['first'] <= last for first, last in order[1])
                    and ('archive release', (), order[2]) not in before[at:]]
            if not found and (self.removed_before is None or each['next'] is None or each['next'] >= self.removed_before): judged = 'altered', 'it is missing'
            elif held: judged = 'unproven', 'it is missing although an operation holds it for the case %s' % held[0][2]
            elif found: judged = 'note', 'operation %d removed it: %s, %s, %s' % (found[0][0]['seq'], found[0][0].get('actor') or 'no actor', found[0][0]['at'], found[0][1][2])
            elif each['oldest'] is not None and each['next'] - each['oldest'] > 3 * DAY:
                judged = 'unproven', 'it is missing although older ones are there, and no operation removed it'
            else: judged = 'note', 'retention removed it, without an operation'
            is_next = last == (each['first'], judged) and judged[0] != 'altered'
            self.find(judged[0], *((self.findings.pop()[1], judged[1] + '; the same for the next ones') if is_next else (each['name'], judged[1])))
            last = each['last'] + 1, judged

    def conclusions(self, result, confirmed, since):
        proven, missing = sum(judged == (None, False) for _, judged in self.windows.values()), sum(each['last'] - each['first'] + 1 for each in self.missing)
        verdicts, checked = {'intact': 'INTACT for what remains' if missing else 'INTACT', 'altered': 'ALTERED OR MISSING', 'unproven': 'NOT PROVEN'}, counted(len(self.log[0]), 'line')
        yield '%s: %s checked' % (verdicts[result], counted(len(self.log[0]) - missing, 'line'))
        yield 'windows: %d proven, %d not checked because lines are missing, %d in doubt' % (proven, len(self.skipped), len(self.windows) - proven)
        if missing: yield '%s not read, because their segments are missing' % counted(missing, 'line was', 'lines were')
        if self.archived: yield 'the newest line was archived on %s' % iso(self.archived[-1][0])
        for key, sizes in self.spans.items(): yield 'the key %s+%s signed checkpoints of %d to %d lines' % (*key, sizes[0], sizes[-1])
        for at, lines in self.tokens[-1:]: yield '%s: %d of %s existed on %s' % (counted(len(self.tokens), 'time stamp'), lines, checked, iso(at))
        if self.cosigned: yield '%s: %d of %s cosigned, last on %s' % (counted(self.cosigned[0], 'witness', 'witnesses'), self.cosigned[1], checked, iso(self.cosigned[2]))
        if self.age is not None: yield 'each line that they cover was stamped or cosigned within %d h of its archiving' % -(-self.age // HOUR)
        yield 'the checkpoint from elsewhere confirms %s' % ('%d of %s' % (confirmed, checked) if confirmed else 'nothing') if since else 'no checkpoint from elsewhere was compared (--since FILE)'

    def check_windows(self):
        is_period = self.begin is not None or self.end is not None
        self.skipped -= {*self.windows}
        self.skipped and self.find('note', 'ledger', 'windows not checked, because records of them may be in missing segments: %d' % len(self.skipped))
        for source in sorted(self.sources) or ['ledger']:
            lines = sorted((line for (name, _), (line, _) in self.windows.items() if name == source), key=lambda line: line['from'])
            covered, holes = self.begin if self.begin is not None else lines and lines[0]['from'], [(-math.inf, lines[0]['from'] if lines else math.inf)]
            for begin, end in [(line['from'], line['to']) for line in lines] + [(self.end or 0,) * 2] if lines else []:
                begin > covered and self.find('unproven' if is_period else 'note', '%s %s/%s' % (source, iso(covered), iso(begin)), 'no window covers this time')
                begin > covered and holes.append((covered, begin))
                covered = max(covered, end)
            is_period and not lines and self.find('unproven', source, 'no window lies in the period')
            is_out = lambda time, holes=holes, end=covered: lines and time >= end or time < holes[bisect.bisect(holes, (time, math.inf)) - 1][1]
            outside = 0 if is_period or self.skipped else sum(is_out(time) for rows in self.records.get(source, {}).values() for time, _ in rows)
            outside and self.find('note', source, 'no window covers the times of %d records' % outside)
        self.counts['unstated'] and self.find('note', 'ledger', '%(unstated)d lines prove a window without the query and the total of the service' % self.counts)
        (repeated := sum(self.repeated.values())) and self.find('note', 'ledger', '%d records in windows are copies of earlier records, and count once' % repeated)
        self.counts['without uid'] and self.find('note', 'segments/', '%(without uid)d records have no logId, or fields of another type' % self.counts)
        self.findings += [('unproven', line['name'], reason) for line, (reason, _) in self.windows.values() if reason]

    def count(self, line):  # Returns what the window leaves open, and whether the records or the query contradict its line.
        if line['state'] != 'proven' or line['reason'] is not None:
            return {'proven': 'a later count did not confirm its proof', 'accepted': 'an operator accepted the window without a proof'}.get(line['state'], 'it is a gap'), False
        total, query = line.get('total'), line.get('query') if type(line.get('query')) is dict else {}
        total, asked = total if CHECKS['count'](total) else None, [micros(query.get(name)) for name in ('startTime', 'endTime')]
        self.counts['unstated'] += total is None or None in asked
        is_wrong = total is not None and total < line['records'] or None not in asked and (asked[0] > line['from'] or asked[1] < line['to'])
        is_wrong and self.find('altered', line['name'], 'its line proves more than the service was asked, or counted')
        found, buckets = self.records.get(line['source'], {}), range(line['from'] // BUCKET, -(-line['to'] // BUCKET))
        rows = (row for at in (buckets if len(buckets) < len(found) else filter(buckets.__contains__, found)) for row in found.get(at, ()))
        uids = sorted({*(all_uids := [uid for time, uid in rows if line['from'] <= time < line['to']])})
        self.repeated[line['source'], line['from']] = len(all_uids) - len(uids)
        if len(uids) >= line['records'] and (len(uids) > line['records'] or sha256(b''.join(uids)).hex() == line['digest']):
            return 'the service withdrew records' if len(uids) > line['records'] else None, is_wrong
        begin, reason = None, 'its records differ from its proof'
        for position in self.selections: begin = begin or position if position['sources'] is None or line['source'] in position['sources'] else None
        is_open = self.is_filtered or begin and begin['after'] > 0 and line['from'] < micros(begin['completeSince'])
        return (reason, is_wrong) if is_open else (self.find('altered', line['name'], reason), True)

def duration(text):  # Microseconds of 400d, 1h30m.
    need(re.fullmatch(r'([0-9]+(ms|[smhd]))+', text), 'it is not a duration such as 400d')
    return sum(int(digits) * {'ms': 1_000, 's': 10 ** 6, 'm': 60 * 10 ** 6, 'h': 3_600 * 10 ** 6, 'd': DAY}[unit] for digits, unit in re.findall(r'(\d+)(ms|[smhd])', text))

quorum = lambda text: int(re.fullmatch('[1-9][0-9]{0,3}', text)[0])

def bound(text, is_end=False):  # Microseconds of a time, or of a day or a month in UTC, which --to includes.
    at = micros(text + {4 + 3: '-01T00:00:00Z', 10: 'T00:00:00Z'}.get(len(text), ''))
    need(at is not None and (len(text) in (7, 10) or text[-1] in 'Z' or text[-6] in '+-'), 'it is not a time such as 2026-11-21T00:00:00Z, 2026-11-21 or 2026-11')
    return at + DAY * is_end * (calendar.monthrange(int(text[:4]), int(text[5:]))[1] if len(text) == 7 else len(text) == 10)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    place = parser.add_mutually_exclusive_group(required=True)
    binary, content = argparse.FileType('rb'), lambda path: binary(path).read()
    def key_file(path, kind=1):
        lines = filter(None, (re.sub(r' [0-9]+ ([0-9]+|-)\Z', '', line.strip(' \t\r')) for line in content(path).decode('utf-8-sig', 'replace').split('\n')))
        return [read_key(line, kind) for line in lines] or need(False, '"%s" has no key' % path)
    def certificate_file(path):
        found = re.findall(b'-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----', content(path))
        return need(found and all(openssl('x509 -noout -subject -in ca', ca=each) for each in found), 'a certificate in PEM format was expected') or b'\n'.join(found)
    lists = ('--key', 'extend', key_file), ('--since', 'append', content), ('--witness', 'extend', functools.partial(key_file, kind=4))
    for name, action, read in lists: parser.add_argument(name, default=[], action=action, type=read, required=name == '--key')
    files = (place, '--directory', Directory), (place, '--proof', binary), (parser, '--former', Directory), (parser, '--timestamp-ca', certificate_file)
    for group, name, read in files: group.add_argument(name, type=read)
    arguments = ('--retention', duration, 'segments older than this may be missing, e.g. 400d'), ('--stamped-within', duration, 'default 48h'), (
        '--from', bound, 'each window of a period: a time, a day or a month'), ('--to', functools.partial(bound, is_end=True), 'its end'), (
        '--key-until', bound, 'a key was stolen then'), ('--fresh', duration, 'the newest line, time stamp and cosignature must not be older'), ('--quorum', quorum, 'default: all of --witness')
    for name, read, text in arguments: parser.add_argument(name, type=read, help=text)
    parser.add_argument('--print', action='store_true', help='with --proof: standard output receives the verified lines, and nothing else')
    options = parser.parse_args()
    since = [note.replace(b'\r\n', b'\n').removeprefix(b'\xef\xbb\xbf').strip() + b'\n' for note in options.since]  # Mail and editors change them.
    for place in filter(None, (options.directory, options.former)): place.is_dir() or parser.error('"%s" is not a directory' % place)
    options.former and options.key_until is not None and parser.error('--key-until needs one archive: verify the former one alone')
    all('\n\n\u2014 '.encode() in note for note in since) or parser.error('--since is not a checkpoint with a signature')
    given = vars(options)
    others = [name for name in given if name not in ('key', 'directory', 'proof', 'print', 'timestamp_ca', 'witness', 'quorum') and given[name] not in (None, [])]
    options.directory or not others or parser.error('--proof needs no archive: leave out ' + ', '.join(others))
    options.directory and options.print and parser.error('--print needs --proof')
    def show(number, line, at, size, date):
        existed = '' if date is None else '; it existed on ' + iso(date * 10 ** 6)
        sys.stdout.buffer.write(line + b'\n') if options.print else print(ascii('proof %d: line %d of %d: ' % (number, at, size) + statement(line) + existed)[1:-1])
    now, (begin, end) = int(time.time() * 10 ** 6), (given['from'], options.to)
    begin is None or end is None or begin < end or parser.error('the end of the period is not after its start')
    before = lambda span: None if span is None else now - span
    witnesses, least = options.witness, len(options.witness) if options.quorum is None else options.quorum
    len({key[2] for key in witnesses}) == len(witnesses) or parser.error('--witness: two lines have the same key')
    options.quorum is None or 1 <= least <= len(witnesses) or parser.error('--quorum %d: --witness names %d witnesses' % (least, len(witnesses)))
    verification, checked = Verification(options.directory, options.key, options.timestamp_ca, None, before(options.retention), begin, end,
                                        options.stamped_within, options.key_until, before(options.fresh), witnesses, least), 0
    try:
        checked = verification.run(since) if options.directory else verification.prove(options.proof, show)
        options.directory and verification.check_former(options.former)
    except OSError as error: verification.find('unproven', options.directory or '--proof', str(error))
    result = next((each for each in ('altered', 'unproven') if each in [finding[0] for finding in verification.findings]), 'intact')
    last = verification.conclusions(result, checked, since) if options.directory else ['%s: %s' % (result.upper(), checked)]  # Names may have control characters.
    for line in (*('%s %s: %s' % finding for finding in verification.findings), *last): print(ascii(line)[1:-1], file=sys.stderr if options.print else sys.stdout)
    return {'intact': 0, 'altered': 1, 'unproven': 3}[result]

if __name__ == '__main__': sys.exit(main())
