"""Runs content/archive/verify.py on many archives and proofs: one process for many tests, because its start takes longer than its work.

Each line of standard input is a JSON object. {"files": {path: base64}, "key": text, "since": [base64], "roots": PEM, "now": seconds,
"removedBefore", "from", "to", "within", "keyUntil", "freshSince": microseconds, "witnesses": [key], "quorum": n, "former": files of the former archive}
sets the archive and has no answer; {"changes": {path: base64 or null}} judges a changed copy of it, where "--since" is the checkpoint from elsewhere for this copy; {"proof": text, "key": text} judges a file of proofs. {"writes": [[path, base64]], "begin": n, "at": k, "end": m, "key": text} judges a directory
that has the first n of these writes, and those up to m right before operation k of verify.py. The answer is one line: the severity and object of
each finding, as JSON. {"arguments": [text]} runs the command; its answer is the exit code, and what it prints.
"""
import base64, contextlib, functools, importlib.util, io, json, os, sys, tempfile

path = os.path.join(os.path.dirname(__file__), '../../content/archive/verify.py')
spec = importlib.util.spec_from_file_location('verify', path)
verify = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(verify)

# Changed copies of an archive share most of their lines. What a line says depends on its bytes alone.
once_read = functools.lru_cache(4096)(verify.read_line)


def read_line(data):
    line, entry = once_read(data)
    return dict(line), entry


verify.read_line = read_line


class Memory:
    def __init__(self, files):
        self.files = files

    def read(self, path):
        return self.files.get(path)

    def list(self):
        return list(self.files)


class Growing(verify.Directory):
    """A directory that another process writes. A name that is added while a folder is read may be found or not."""
    def grow(self, begin, at, end, writes):
        self.more, self.countdown = writes[begin:end], at
        self.store(writes[:begin])
        return self

    def store(self, writes):
        for path, data in writes:
            os.makedirs(os.path.dirname(self / path), exist_ok=True)
            with open(self / path, 'wb') as file:
                file.write(base64.b64decode(data))

    def operate(self):
        if self.countdown == 0:
            self.store(self.more)
        self.countdown -= 1

    def read(self, path):
        self.operate()
        return super().read(path)

    def scandir(self, folder):
        if not isinstance(folder, Growing):
            return scandir(folder)
        self.operate()
        before = list(scandir(folder))
        self.operate()
        names = {found.name for found in before}
        added = sorted((found for found in scandir(folder) if found.name not in names), key=lambda found: found.name)
        return before + (added[-1:] if str(folder).endswith('checkpoints') else [])


scandir = os.scandir


def judge_growing(request):
    with tempfile.TemporaryDirectory() as folder:
        store = Growing(folder).grow(request['begin'], request['at'], request['end'], request['writes'])
        os.scandir = store.scandir
        try:
            verification = verify.Verification(store, keys_of(request))
            verification.run()
            return verification
        finally:
            os.scandir = scandir


def decoded(files):
    return {path: data if data is None else base64.b64decode(data) for path, data in files.items()}


def keys_of(request):
    return [verify.read_key(key) for key in request['key'].rstrip('\n').split('\n')]


def run_command(arguments):
    printed = io.TextIOWrapper(io.BytesIO(), 'utf-8', write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        sys.argv = [path, *arguments]
        try:
            code = verify.main()
        except SystemExit as end:
            code = end.code
    return code, printed.buffer.getvalue().decode()


for line in sys.stdin:
    request = json.loads(line)
    if 'arguments' in request:
        print(json.dumps(run_command(request['arguments'])), flush=True)
        continue
    if 'files' in request:
        files, keys, roots, now = decoded(request['files']), keys_of(request), request.get('roots'), request.get('now')
        others = [request.get(name) for name in ('removedBefore', 'from', 'to', 'within', 'keyUntil', 'freshSince')]
        since = list(map(base64.b64decode, request['since']))
        former = Memory(decoded(request['former'])) if 'former' in request else None
        witnesses, quorum = [verify.read_key(key, 4) for key in request.get('witnesses', [])], request.get('quorum')
        continue
    if 'writes' in request:
        verification = judge_growing(request)
    elif 'proof' in request:
        verification = verify.Verification(Memory({}), keys_of(request))
        verification.prove(io.BytesIO(request['proof'].encode()))
    else:
        changed = {path: data for path, data in {**files, **decoded(request['changes'])}.items() if data is not None}
        elsewhere = [changed.pop('--since')] if '--since' in changed else since
        verification = verify.Verification(Memory(changed), keys, roots.encode() if roots else None, now, *others, witnesses, quorum)
        verification.run(elsewhere)
        verification.check_former(former)
    print(json.dumps([[severity, name] for severity, name, _ in verification.findings]), flush=True)
