"""Writes an image as an archive that `podman load`, `docker load` and skopeo read.

    image.py ARCHIVE NAME:TAG CONFIG LAYER…

CONFIG is the JSON of the image's configuration (User, Entrypoint, Healthcheck, …), each LAYER a
folder. All times are SOURCE_DATE_EPOCH and files come in the order of their names, so that the same
folders make the same archive, byte for byte. buildah and podman would write the id of their working
container and a random host name into the configuration.

Prints the image's id.
"""
import hashlib
import io
import json
import os
import sys
import tarfile
import time

EPOCH = int(os.environ['SOURCE_DATE_EPOCH'])


def _layer(folder):
    """A folder as a tar, with the owners and modes that its files have."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w', format=tarfile.GNU_FORMAT) as tar:
        for where, folders, files in os.walk(folder):
            folders.sort()
            # Links to folders are listed as folders.
            for name in sorted(files + folders):
                path = os.path.join(where, name)
                entry = tar.gettarinfo(path, os.path.relpath(path, folder))
                entry.mtime, entry.uname, entry.gname = EPOCH, '', ''
                if entry.isreg():
                    with open(path, 'rb') as file:
                        tar.addfile(entry, file)
                else:
                    tar.addfile(entry)
    return packed.getvalue()


def _add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), 0o444, EPOCH
    tar.addfile(entry, io.BytesIO(data))


def main(archive, tag, config, *folders):
    layers = [_layer(folder) for folder in folders]
    digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
    created = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(EPOCH))
    image = json.dumps({
        'created': created,
        'architecture': os.environ['IMAGE_ARCHITECTURE'],
        'os': 'linux',
        'config': json.loads(config),
        'rootfs': {'type': 'layers', 'diff_ids': ['sha256:' + digest for digest in digests]},
        'history': [{'created': created, 'created_by': 'packaging/image'} for _ in layers],
    }, sort_keys=True).encode()
    identity = hashlib.sha256(image).hexdigest()
    names = [digest + '.tar' for digest in digests]
    manifest = [{'Config': identity + '.json', 'RepoTags': [tag], 'Layers': names}]
    with tarfile.open(archive, 'w', format=tarfile.GNU_FORMAT) as tar:
        _add(tar, identity + '.json', image)
        for name, layer in zip(names, layers):
            _add(tar, name, layer)
        _add(tar, 'manifest.json', json.dumps(manifest).encode())
    print(identity)


if __name__ == '__main__':
    main(*sys.argv[1:])
