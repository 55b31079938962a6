#!/usr/bin/env python3
"""Verifies an archive of Waybill, without Waybill: Python's standard library, and openssl for signatures.

A key file has one key a line: name+id+base64 (C2SP signed-note). --since is a checkpoint that was stored elsewhere. --proof is a file of
"waybill archive prove" or "export", which is checked without the archive.
Exit codes: 0 intact; 1 altered or missing; 2 wrong usage; 3 something cannot be proven. Memory grows with the archive.
"""
import argparse, base64, datetime, gzip, hashlib, json, pathlib, re, struct, subprocess, sys, tempfile, zlib

TIME = re.compile(r'([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))?')
BUCKET = 600_000_000
WRONG = (KeyError, TypeError, AttributeError, ValueError, RecursionError, OSError, EOFError, struct.error, zlib.error)

def sha256(data):
    return hashlib.sha256(data).digest()

class Directory:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def read(self, path):
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    def list(self, folder):
        return sorted(file.relative_to(self.root).as_posix() for file in (self.root / folder).rglob('*') if file.is_file())

# The Merkle tree of RFC 6962, in tiles of 256 hashes (C2SP tlog-tiles)

def join(hashes):
    if len(hashes) == 1:
        return hashes[0]
    middle = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b'\x01' + join(hashes[:middle]) + join(hashes[middle:]))

def tile_path(kind, index, width):
    groups = re.findall('...', str(index).zfill(-(-len(str(index)) // 3) * 3))
    return '/'.join(['tile', kind] + ['x' + group for group in groups[:-1]] + groups[-1:]) + ('' if width == 256 else '.p/%d' % width)

class Log:
    """Row 0 has the entries with their lengths, row 1 the leaf hashes, and each further row the roots of the complete tiles before it."""
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

    def objects(self, before):
        """The tiles and bundles that a log of this size has, and one of the size before has not."""
        for level, row in enumerate(self.rows, -1):
            for index in range(before // 256 ** (max(level, 0) + 1), -(-len(row) // 256)):
                part = row[index * 256:index * 256 + 256]
                yield tile_path('entries' if level < 0 else str(level), index, len(part)), b''.join(part)

# Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint). Each function raises ValueError for what is none.
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

def is_signed(key, text, signature, known={}):
    """Asks openssl, once for each signature."""
    if (key, text, signature) not in known:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in (('key', bytes.fromhex('302a300506032b6570032100') + key), ('text', text), ('signature', signature)):
                pathlib.Path(folder, name).write_bytes(data)
            command = 'openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in text -sigfile signature'
            known[key, text, signature] = subprocess.run(command.split(), cwd=folder, capture_output=True).returncode == 0
    return known[key, text, signature]

def read_checkpoint(data, keys):
    """Returns origin, size, root and the keys that signed them; None where no known key signed them."""
    text, _, signatures = data.decode().rpartition('\n\n')
    lines = [re.fullmatch('\u2014 ([^\\s+]+) (\\S+)', line) for line in signatures.split('\n')[:-1]]
    if re.search('[\x00-\x09\x0b-\x1f]', text + signatures) or not signatures.endswith('\n') or not all(lines) or len(lines) > 64:
        raise ValueError('it is not a signed note')
    signatures = [(line[1], unbase64(line[2])) for line in lines]
    known = [(key, signature) for name, signature in signatures for key in keys if key[:2] == (name, signature[:4].hex())]
    for (name, identity, key), signature in known:
        if not is_signed(key, (text + '\n').encode(), signature[4:]):
            raise ValueError('the signature by "%s+%s" is invalid' % (name, identity))
    return (*parse_checkpoint(text), sorted(key[:2] for key, _ in known)) if known else None

def parse_checkpoint(text):
    found = re.fullmatch('([^\n]+)\n(0|[1-9][0-9]*)\n([^\n]+)', text)
    if not found or len(unbase64(found[3])) != 32:
        raise ValueError('it is not a checkpoint')
    return found[1], int(found[2]), unbase64(found[3])

def micros(text):
    """Microseconds since 1970, cut; None for what is not a time. A leap second counts as :59.999999."""
    found = TIME.fullmatch(text) if isinstance(text, str) else None
    if not found or int(found[9] or 0) > 23 or int(found[10] or 0) > 59 or int(found[6]) > 60:
        return None
    is_leap, offset = found[6] == '60', (int(found[9] or 0) * 60 + int(found[10] or 0)) * (-60 if found[8] == '-' else 60)
    try:
        moment = datetime.datetime(*map(int, found.groups()[:5]), 59 if is_leap else int(found[6]), tzinfo=datetime.timezone.utc)
    except ValueError:
        return None
    at = (int(moment.timestamp()) - offset) * 1_000_000 + (999_999 if is_leap else int((found[7] or '')[:6].ljust(6, '0')))
    return at if 0 <= at < 8_993_721_600_000_000 else None

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

def check_proof(text, keys):
    """Returns the checkpoint of a proof; None where no known key signed it."""
    proof = json.loads(text)
    hashes, entry, at, data = list(map(unbase64, proof['hashes'])), unbase64(proof['entry']), proof['index'], proof['checkpoint'].encode()
    _, size, root = parse_checkpoint(data.decode().rpartition('\n\n')[0])
    if proof['format'] != 'waybill-proof/1' or read_line(proof['line'].encode())[1] != entry:
        raise ValueError('the entry is not that of the line')
    found, last = sha256(b'\x00' + entry), size - 1
    for sibling in hashes:
        is_right = at & 1 or at == last
        found = sha256(b'\x01' + (sibling + found if is_right else found + sibling))
        while is_right and not at & 1 and at:
            at, last = at >> 1, last >> 1
        at, last = at >> 1, last >> 1
    if not 0 <= proof['index'] < size or any(len(each) != 32 for each in hashes) or last != 0 or found != root:
        raise ValueError('the hashes do not lead from the entry to the root of the checkpoint')
    return read_checkpoint(data, keys)

class Verification:
    def __init__(self, store, keys):
        self.store, self.keys, self.findings, self.log, self.segments = store, keys, [], Log(), {}
        self.records, self.windows, self.position, self.selections, self.is_filtered, self.is_lossy = {}, {}, None, [], False, False

    def find(self, *finding):
        self.findings.append(finding)

    def checkpoint(self, name, data):
        try:
            if data is None:
                raise ValueError('it is missing')
            return read_checkpoint(data, self.keys) or self.find('unproven', name, 'no key signed it that --key names')
        except ValueError as error:
            return self.find('altered', name, str(error))

    def prove(self, text):
        for number, line in enumerate(text.rstrip('\n').split('\n'), 1):
            try:
                check_proof(line, self.keys) or self.find('unproven', 'proof %d' % number, 'no key signed its checkpoint that --key names')
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
                if present and not valid & present:
                    self.find('unproven', name, 'no checkpoint links its key to the one before')
                replaced, present = (replaced | present, valid - present) if valid - present else (replaced, present)
        self.copy = copy = (Verification(self.store, self.keys).checkpoint('checkpoint', self.store.read('checkpoint')) or ())[:3]
        if copy and copy[1] > signed[-1][1]:
            self.find('altered', 'checkpoint', 'it is signed, and the checkpoint with a number is missing')
        elif copy != signed[-1]:
            self.find('note', 'checkpoint', 'it is not a copy of the newest checkpoint, and no evidence')
        known = {'keys/%s+%s' % key[:2]: base64.b64encode(b'\x01' + key[2]) for key in self.keys}
        for name in self.store.list('keys'):
            if self.store.read(name) != name[5:].encode() + b'+' + known.get(name, b'') + b'\n':
                self.find('note', name, 'it is not a key that --key names, and no evidence')
        self.follow_all(signed[1:])
        self.findings += [('unproven', name, reason) for name, reason in self.windows.values() if reason]
        confirmed = (self.checkpoint('--since', since) or ())[:3] if since is not None else ()
        if confirmed and confirmed not in signed:
            self.find('altered', '--since', 'the archive does not contain it')
        return len(self.log.rows[0]), confirmed[1] if confirmed in signed else 0

    def follow_all(self, signed):
        for name in self.store.list('segments'):
            found = re.fullmatch(r'segments/([0-9]{16})-[0-9a-f]{64}\.ndjson\.gz', name)
            self.segments.setdefault(int(found[1]) if found else None, []).append(name)
        uncommitted = {name for names in self.segments.values() for name in names}
        for checkpoint in signed:
            size, problems = len(self.log.rows[0]), []
            steps = self.follow(checkpoint, problems)
            if steps is None:
                self.find('altered', self.segments.get(size, ['segments/%016d-…' % size])[0], (problems + ['it is missing'])[0])
                if not self.follow_entries(checkpoint):
                    return
                self.position, self.is_lossy = None, True
            self.compare_objects(size, checkpoint is signed[-1], checkpoint == self.copy)
            for name, lines in steps or []:
                uncommitted.discard(name)
                self.add_lines(name, lines)
        self.findings += [('note', name, 'no checkpoint commits it: it is no evidence') for name in uncommitted]

    def follow(self, checkpoint, problems):
        """Returns the segments that lead to the root. There is more than one after a checkpoint that cannot be read."""
        size = len(self.log.rows[0])
        if size == checkpoint[1]:
            return [] if self.log.root() == checkpoint[2] else problems.append('its lines do not have the root of a checkpoint')
        for name in self.segments.get(size, []) if size < checkpoint[1] else []:
            data = self.store.read(name)
            try:
                if sha256(data).hex() != name[26:90]:
                    raise ValueError('its SHA-256 is not the one in its name')
                lines = [read_line(line) for line in gzip.decompress(data).removesuffix(b'\n').split(b'\n')]
            except WRONG as error:
                problems.append(str(error))
                continue
            for _, entry in lines:
                self.log.append(entry)
            if (rest := self.follow(checkpoint, problems)) is not None:
                return [(name, [line for line, _ in lines])] + rest
            self.log.cut(size)
        return None

    def follow_entries(self, checkpoint):
        """Entries stay where lines are lost, so that what follows can be checked."""
        size = len(self.log.rows[0])
        for index in range(size // 256, -(-checkpoint[1] // 256)):
            data = self.store.read(tile_path('entries', index, min(256, checkpoint[1] - index * 256))) or b''
            for at in range(max(0, size - index * 256) * 59, len(data), 59):
                self.log.append(data[at + 2:at + 59])
        return len(self.log.rows[0]) == checkpoint[1] and self.log.root() == checkpoint[2]

    def compare_objects(self, before, is_newest, is_copied):
        for name, data in self.log.objects(before):
            found = self.store.read(name)
            if found != data and (found is not None or (is_copied if is_newest else '.p/' not in name)):
                self.find('altered', name, 'it is missing' if found is None else 'it differs from what the lines give')

    def add_lines(self, name, lines):
        last = lines[-1]
        if last['kind'] != 'position':
            return self.find('altered', name, 'its last line is not a position')
        before = self.position or {**last, 'seq': last['after']}
        if before['journal'] != last['journal']:
            self.find('unproven', name, 'another journal follows')
            self.selections = []
        elif before['seq'] != last['after']:
            self.find('altered', name, 'it does not continue the segment before')
        self.position, self.is_filtered = last, self.is_filtered or last['filtered']
        if not self.selections or self.selections[-1]['sources'] != last['sources']:
            self.selections.append(last)
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
        is_open = self.is_lossy or self.is_filtered or begin and begin['after'] > 0 and start < micros(begin['completeSince'])
        return reason if is_open else self.find('altered', line['name'], reason)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument('--directory')
    place.add_argument('--proof')
    parser.add_argument('--key', required=True, action='append')
    parser.add_argument('--since')
    options = parser.parse_args()
    try:
        keys = [read_key(line) for path in options.key for line in pathlib.Path(path).read_text().rstrip('\n').split('\n')]
        since = pathlib.Path(options.since).read_bytes() if options.since else None
        proof = pathlib.Path(options.proof).read_text() if options.proof else None
        if options.directory and not pathlib.Path(options.directory).is_dir():
            raise ValueError('"%s" is not a directory' % options.directory)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    verification, counts = Verification(Directory(options.directory or ''), keys), (0, 0)
    try:
        counts = verification.prove(proof) if proof is not None else verification.run(since)
    except OSError as error:
        verification.find('unproven', options.directory, str(error))
    sys.stdout.writelines('%s %s: %s\n' % finding for finding in verification.findings)
    result = next((each for each in ('altered', 'unproven') if each in [finding[0] for finding in verification.findings]), 'intact')
    print('%s: %d lines, of which a checkpoint from elsewhere confirms %d' % (result, *counts))
    return {'intact': 0, 'altered': 1, 'unproven': 3}[result]

if __name__ == '__main__':
    sys.exit(main())
