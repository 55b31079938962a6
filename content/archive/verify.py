#!/usr/bin/env python3
"""Verifies an archive of Waybill, without Waybill: Python's standard library, and openssl for signatures.

A key file has one key a line: name+id+base64 (C2SP signed-note). --since is a checkpoint that was stored elsewhere. --timestamp-ca has the
roots of time-stamping authorities in PEM. --proof is a file of "waybill archive prove" or "export", which is checked without the archive.
Exit codes: 0 intact; 1 altered or missing; 2 wrong usage; 3 something cannot be proven. It ends at the first altered segment."""
import argparse, base64, calendar, datetime, functools, gzip, hashlib, json, pathlib, re, struct, subprocess, sys, tempfile, time, zlib

TIME = re.compile(r'([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-2][0-9]:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?')
CHECKPOINT = re.compile('([^\n]+)\n(0|[1-9][0-9]*)\n([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)')
BUCKET = 600_000_000
WRONG = (LookupError, TypeError, AttributeError, ValueError, RecursionError, OSError, EOFError, struct.error, zlib.error)

def sha256(data):
    return hashlib.sha256(data).digest()

class Directory:
    def __init__(self, root):
        self.root = root

    def read(self, path):
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    def list(self, folder):
        return sorted(file.relative_to(self.root).as_posix() for file in (self.root / folder).rglob('*') if file.is_file())

def join(hashes):
    if len(hashes) == 1:
        return hashes[0]
    middle = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b'\x01' + join(hashes[:middle]) + join(hashes[middle:]))

def tile_path(kind, index, width):
    groups = re.findall('...', str(index).zfill(-(-len(str(index)) // 3) * 3))
    return '/'.join(['tile', kind] + ['x' + group for group in groups[:-1]] + groups[-1:]) + ('' if width == 256 else '.p/%d' % width)

class Log:
    """The tree of RFC 6962 in tiles of 256 hashes (C2SP tlog-tiles): in row 0 entries, in row 1 leaves, then roots of the tiles below."""
    def __init__(self):
        self.rows = [[], []]

    def append(self, entry):
        self.rows[0].append(struct.pack('>H', len(entry)) + entry)
        found, level = sha256(b'\x00' + entry), 1
        while found:
            row = self.rows[level]
            row.append(found)
            found, level = None if len(row) % 256 else join(row[-256:]), level + 1
            self.rows += [[]] if level == len(self.rows) else []

    def cut(self, size):
        for level, row in enumerate(self.rows, -1):
            del row[size // 256 ** max(level, 0):]

    def root(self):
        part = []
        for row in self.rows[1:]:
            part = [join(tail)] if (tail := row[len(row) - len(row) % 256:] + part) else []
        return part[0] if part else sha256(b'')

def unbase64(text):
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError('it is not base64')
    return data

def read_key(text):
    name, identity, data = text.rstrip('\n').split('+', 2)
    data = unbase64(data)
    if len(data) != 33 or data[0] != 1 or sha256(name.encode() + b'\n' + data)[:4].hex() != identity:
        raise ValueError('"%s" is not name+id+base64 of an Ed25519 key' % text.strip())
    return name, identity, data[1:]

def openssl(command, at=0, **files):
    """Runs openssl in a folder with these files; {} stands for a time. Returns what it prints; None when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            pathlib.Path(folder, name).write_bytes(data)
        done = subprocess.run(['openssl'] + command.format(int(at)).split(), cwd=folder, capture_output=True)
        return done.stdout.decode() if done.returncode == 0 else None

@functools.cache
def is_signed(key, text, signature):
    command = 'pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in text -sigfile signature'
    return openssl(command, key=bytes.fromhex('302a300506032b6570032100') + key, text=text, signature=signature) is not None

def read_checkpoint(data, keys):
    """Of C2SP tlog-checkpoint: origin, size, root and the known keys that signed them; None for another text of unknown keys."""
    text, _, signatures = data.decode().rpartition('\n\n')
    lines = [re.fullmatch('\u2014 ([^\\s+]+) (\\S+)', line) for line in signatures.split('\n')[:-1]]
    if re.search('[\x00-\x09\x0b-\x1f]', text + signatures) or not signatures.endswith('\n') or not all(lines) or len(lines) > 64:
        raise ValueError('it is missing, or not a signed note')
    signatures = [(line[1], unbase64(line[2])) for line in lines]
    known = [(key, signature) for name, signature in signatures for key in keys if key[:2] == (name, signature[:4].hex())]
    if any(not is_signed(key[2], (text + '\n').encode(), signature[4:]) for key, signature in known):
        raise ValueError('a signature of a known key is invalid')
    found = CHECKPOINT.fullmatch(text)
    if known and not found:
        raise ValueError('it is signed, and is not a checkpoint')
    return found and (found[1], int(found[2]), unbase64(found[3]), sorted(key[:2] for key, _ in known))

def micros(text):
    """Microseconds since 1970, cut; None for what is not a time. A leap second counts as :59.999999."""
    found = TIME.fullmatch(text) if isinstance(text, str) else None
    try:
        clock, fraction, zone = found.groups()
        moment = datetime.datetime.fromisoformat(re.sub(':60$', ':59', clock) + (zone or 'Z').replace('Z', '+00:00'))
    except (AttributeError, ValueError):
        return None
    at = int(moment.timestamp()) * 1_000_000 + (999_999 if clock.endswith(':60') else int((fraction or '')[:6].ljust(6, '0')))
    return at if 0 <= at < 8_993_721_600_000_000 and clock[11:13] < '24' else None

def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)

def read_line(data):
    line = json.loads(data.decode('utf-8', 'replace'))
    uid = base64.urlsafe_b64decode(line['uid'] + '==') if line['kind'] == 'record' else bytes(16)
    if line['kind'] == 'record':
        is_object = isinstance(line['record'], dict) and depth(line['record']) <= 64  # A deeper record counts as text.
        line['time'] = micros(line['record'].get('logTimestamp')) if is_object else None
    elif line['kind'] == 'ledger':
        line['from'], line['to'] = micros(line['from']), micros(line['to'])
        line['name'] = '%s %d/%d' % (line['source'], line['from'], line['to'])
    return line, struct.pack('>B16sQ32s', ['', 'record', 'ledger', 'operation', 'position'].index(line['kind']), uid, line['seq'], sha256(data))

def root_of(found, index, size, hashes):
    """The root of a tree by an inclusion proof (RFC 9162, section 2.1.3.2), which this takes from its end."""
    if size == 1:
        return found
    middle, sibling = 1 << (size - 1).bit_length() - 1, hashes.pop()
    inner = root_of(found, index % middle, middle if index < middle else size - middle, hashes)
    return sha256(b'\x01' + (inner + sibling if index < middle else sibling + inner))

def check_proof(text, keys):
    """Returns the known keys that signed the checkpoint of a proof."""
    proof = json.loads(text)
    hashes, entry, index = list(map(unbase64, proof['hashes'])), unbase64(proof['entry']), proof['index']
    _, size, root, signers = read_checkpoint(proof['checkpoint'].encode(), keys)
    if proof['format'] != 'waybill-proof/1' or read_line(proof['line'].encode())[1] != entry:
        raise ValueError('the entry does not belong to the line')
    if not 0 <= index < size or any(len(each) != 32 for each in hashes) or root_of(sha256(b'\x00' + entry), index, size, hashes) != root or hashes:
        raise ValueError('the hashes do not lead from the entry to the root of the checkpoint')
    return signers

class Verification:
    def __init__(self, store, keys, authorities=None, now=None):
        self.store, self.keys, self.findings, self.log, self.segments = store, keys, [], Log(), {}
        self.authorities, self.now, self.stamped, self.numbers = authorities, now or time.time(), {}, {}
        self.records, self.windows, self.position, self.selections, self.is_filtered = {}, {}, None, [], False
        self.find = lambda *finding: self.findings.append(finding)

    def checkpoint(self, name, data):
        try:
            found = read_checkpoint(data or b'', self.keys)
            return found if found and found[3] else self.find('unproven', name, 'no key of --key signed it')
        except ValueError as error:
            return self.find('altered', name, str(error))

    def prove(self, text):
        for number, line in enumerate(text.rstrip('\n').split('\n'), 1):
            try:
                check_proof(line, self.keys) or self.find('unproven', 'proof %d' % number, 'no key of --key signed its checkpoint')
            except WRONG as error:
                self.find('altered', 'proof %d' % number, str(error))
        return number, 0

    def run(self, since=None):
        """Returns the number of lines, and how many the checkpoint from elsewhere confirms."""
        numbers = [int(name[12:]) for name in self.store.list('checkpoints') if re.fullmatch('checkpoints/[0-9]{10}', name)]
        signed, present, replaced = [(None, 0, None)], set(), set()  # After a checkpoint with two keys, the former one signs nothing.
        for name in ('checkpoints/%010d' % number for number in range(1, max(numbers, default=1) + 1)):
            found = self.checkpoint(name, self.store.read(name))
            valid = set(found[3]) - replaced if found else set()
            if found and (not valid or found[0] != (signed[-1][0] or found[0]) or found[1] <= signed[-1][1]):
                self.find('altered', name, 'it does not continue the checkpoint before')
            elif found:
                signed.append(found[:3])
                self.numbers[found[1]] = name[12:]
                if present and not valid & present:
                    self.find('unproven', name, 'no checkpoint links its key to the one before')
                replaced, present = (replaced | present, valid - present) if valid - present else (replaced, present)
        self.copy = copy = (Verification(self.store, self.keys).checkpoint('checkpoint', self.store.read('checkpoint')) or ())[:3]
        if copy != signed[-1]:
            self.find('altered' if copy and copy[1] > signed[-1][1] else 'note', 'checkpoint', 'it is not a copy of the newest checkpoint with a number')
        known = {'keys/%s+%s' % key[:2]: base64.b64encode(b'\x01' + key[2]) for key in self.keys}
        for name in self.store.list('keys'):
            if self.store.read(name) != name[5:].encode() + b'+' + known.get(name, b'') + b'\n':
                self.find('note', name, 'it is not one of the keys of --key, and no evidence')
        self.follow_all(signed[1:])
        self.check_stamps()
        self.findings += [('unproven', name, reason) for name, reason in self.windows.values() if reason]
        confirmed = (self.checkpoint('--since', since) or ())[:3] if since is not None else ()
        if confirmed and confirmed not in signed:
            self.find('altered', '--since', 'the archive does not contain it')
        return len(self.log.rows[0]), confirmed[1] if confirmed in signed else 0

    def check_stamps(self):
        """A time stamp must be valid at its time, and when a later one covers it, or now (RFC 3161, in the manner of RFC 4998)."""
        stamps, valid = {name: self.store.read(name) for name in self.store.list('timestamps')}, []
        for name, (digest, _) in self.stamped.items():
            if sha256(stamps.get(name, b'')).hex() != digest:
                self.find('altered', name, 'it is missing, or a signed line names another SHA-256')
                stamps.pop(name, None)
        for name, stamp in sorted(stamps.items()) if self.authorities else ():
            files = {'stamp': stamp, 'content': self.store.read('checkpoints/' + name[11:-4]) or b'', 'roots': self.authorities}
            check = functools.partial(openssl, 'ts -verify -in stamp -data content -CAfile roots -attime {}', **files)
            text = re.search(r'^Time stamp: (.{15})[.0-9]* ([0-9]{4}) GMT$', openssl('ts -reply -text -in stamp', stamp=stamp) or '', re.MULTILINE)
            at = calendar.timegm(time.strptime(' '.join(text.groups()), '%b %d %H:%M:%S %Y')) if text else 0
            if check(at) is None:
                self.find('unproven' if files['content'] else 'note', name, 'it is not a time stamp of a checkpoint that --timestamp-ca proves')
            else:
                valid.append((name[11:], at, name, check))
        for index, (_, at, name, check) in enumerate(valid):
            if index and at < valid[index - 1][1]:
                self.find('altered', name, 'its time is before the time of the one before')
            covers = [later[1] for later in valid[index + 1:] if name in self.stamped and self.stamped[name][1] <= later[0]]
            if check((covers or [self.now])[0]) is None:
                self.find('unproven', name, 'its certificate ended before another time stamp covered it')
            elif not covers and check(self.now + 30 * 86400) is None:
                self.find('note', name, 'its certificate ends within 30 days: another one must cover it before')
        valid or self.authorities is None or self.find('unproven', 'timestamps/', 'no time stamp is valid')

    def follow_all(self, signed):
        for name in self.store.list('segments'):
            found = re.fullmatch(r'segments/([0-9]{16})-[0-9a-f]{64}\.ndjson\.gz', name)
            self.segments.setdefault(int(found[1]) if found else None, []).append(name)
        uncommitted = {name for names in self.segments.values() for name in names}
        for checkpoint in signed:
            size = len(self.log.rows[0])
            steps = self.follow(checkpoint)
            if steps is None:
                return self.find('altered', self.segments.get(size, ['segments/%016d-…' % size])[0], 'it is missing, or not as signed')
            self.compare_objects(size, checkpoint is signed[-1], checkpoint == self.copy)
            for name, lines in steps:
                uncommitted.discard(name)
                self.add_lines(name, lines, self.numbers[checkpoint[1]])
        self.findings += [('note', name, 'no checkpoint commits it: it is no evidence') for name in uncommitted]

    def follow(self, checkpoint):
        """Returns the segments that lead to the root. There is more than one after a checkpoint that cannot be read."""
        size = len(self.log.rows[0])
        if size == checkpoint[1]:
            return [] if self.log.root() == checkpoint[2] else None
        for name in self.segments.get(size, []) if size < checkpoint[1] else []:
            data = self.store.read(name)
            try:
                lines = list(map(read_line, gzip.decompress(data).removesuffix(b'\n').split(b'\n')))
            except WRONG:
                continue
            for _, entry in lines if sha256(data).hex() == name[26:90] else ():
                self.log.append(entry)
            if len(self.log.rows[0]) > size and (rest := self.follow(checkpoint)) is not None:
                return [(name, [line for line, _ in lines])] + rest
            self.log.cut(size)

    def compare_objects(self, before, is_newest, is_copied):
        """The tiles and bundles that a log of this size has, and one of the size before has not."""
        for level, row in enumerate(self.log.rows, -1):
            for index in range(before // 256 ** (max(level, 0) + 1), -(-len(row) // 256)):
                part = row[index * 256:index * 256 + 256]
                name = tile_path('entries' if level < 0 else str(level), index, len(part))
                found = self.store.read(name)
                if found != b''.join(part) and (found is not None or (is_copied if is_newest else '.p/' not in name)):
                    self.find('altered', name, 'it is missing' if found is None else 'it differs from what the lines give')

    def add_lines(self, name, lines, number):
        last = lines[-1]
        if last['kind'] != 'position':
            return self.find('altered', name, 'its last line is not a position')
        before = self.position or {**last, 'seq': last['after']}
        if before['journal'] != last['journal'] or before['seq'] < last['after']:
            self.find('unproven', name, 'another journal follows, or entries of the journal are left out')
            self.selections = []
        elif before['seq'] != last['after']:
            self.find('altered', name, 'it does not continue the segment before')
        self.position, self.is_filtered = last, self.is_filtered or last['filtered']
        if not self.selections or self.selections[-1]['sources'] != last['sources']:
            self.selections.append(last)
        if 'timestamp' in last:
            self.stamped.setdefault('timestamps/%010d.tsr' % last['timestamp']['checkpoint'], (last['timestamp']['sha256'], number))
        seq = last['after']
        for line in lines:
            if line['seq'] < seq or line['seq'] == seq and line['kind'] != 'position':
                self.find('altered', name, 'entry %d follows entry %d' % (line['seq'], seq))
            seq = line['seq']
            if line['kind'] == 'record' and line['time'] is not None:
                self.records.setdefault((line['source'], line['time'] // BUCKET), []).append((line['time'], line['uid']))
            elif line['kind'] == 'ledger' and line['from'] < line['to']:
                self.windows[line['source'], line['from']] = line['name'], self.count(line)

    def count(self, line):
        """Returns what the window leaves open."""
        if line['state'] != 'proven' or line['reason'] is not None:
            return 'it is a gap, an accepted gap, or a proof that a later count did not confirm'
        start, end = line['from'], line['to']
        rows = (row for at in range(start // BUCKET, -(-end // BUCKET)) for row in self.records.get((line['source'], at), ()))
        uids = sorted({base64.urlsafe_b64decode(uid + '==') for time, uid in rows if start <= time < end})
        if len(uids) > line['records']:
            return 'the service withdrew records'
        if len(uids) == line['records'] and sha256(b''.join(uids)).hex() == line['digest']:
            return None
        begin, reason = None, 'the archive has %d of %d records, or others' % (len(uids), line['records'])
        for position in self.selections:
            begin = begin or position if line['source'] in (position['sources'] or [line['source']]) else None
        is_open = self.is_filtered or begin and begin['after'] > 0 and start < micros(begin['completeSince'])
        return reason if is_open else self.find('altered', line['name'], reason)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    place = parser.add_mutually_exclusive_group(required=True)
    content = lambda path: argparse.FileType('rb')(path).read()
    place.add_argument('--directory', type=pathlib.Path)
    place.add_argument('--proof', type=content)
    parser.add_argument('--key', required=True, action='extend', type=lambda path: list(map(read_key, content(path).decode().splitlines())))
    parser.add_argument('--since', type=content)
    parser.add_argument('--timestamp-ca', type=content)
    options = parser.parse_args()
    if options.directory and not options.directory.is_dir():
        parser.error('"%s" is not a directory' % options.directory)
    verification, counts = Verification(Directory(options.directory), options.key, options.timestamp_ca), (0, 0)
    try:
        counts = verification.run(options.since) if options.directory else verification.prove(options.proof.decode())
    except OSError as error:
        verification.find('unproven', options.directory, str(error))
    sys.stdout.writelines('%s %s: %s\n' % finding for finding in verification.findings)
    result = next((each for each in ('altered', 'unproven') if each in [finding[0] for finding in verification.findings]), 'intact')
    print('%s: %d lines, of which a checkpoint from elsewhere confirms %d' % (result, *counts))
    return {'intact': 0, 'altered': 1, 'unproven': 3}[result]

if __name__ == '__main__':
    sys.exit(main())
