"""Runs content/archive/verify.py on many changed copies of one archive.

The first line of standard input is {"files": {path: base64}, "key": text, "since": base64}; every further line has the changes of
one copy, {path: base64 or null}. Writes one line for each copy: the severity and object of its findings, as JSON.
"""
import base64, importlib.util, json, os, sys

path = os.path.join(os.path.dirname(__file__), '../../content/archive/verify.py')
spec = importlib.util.spec_from_file_location('verify', path)
verify = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(verify)


class Memory:
    def __init__(self, files):
        self.files = files

    def read(self, path):
        return self.files.get(path)

    def list(self, folder):
        return sorted(path for path in self.files if path.startswith(folder + '/'))


def decoded(files):
    return {path: data if data is None else base64.b64decode(data) for path, data in files.items()}


base = json.loads(sys.stdin.readline())
files, keys = decoded(base['files']), [verify.read_key(key) for key in base['key'].rstrip('\n').split('\n')]
since = base64.b64decode(base['since']) if 'since' in base else None
for line in sys.stdin:
    changed = {path: data for path, data in {**files, **decoded(json.loads(line))}.items() if data is not None}
    verification = verify.Verification(Memory(changed), keys)
    verification.run(since)
    print(json.dumps([[severity, name] for severity, name, _ in verification.findings]))
