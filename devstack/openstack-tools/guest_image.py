#!/usr/bin/python3
"""The tests' guest in Glance: kernel, initial RAM disk, and a small disk that is booted with both
(image `guest`). Only a host of QEMU runs it (`img_hv_type`), so no fake one. Safe to repeat.

Usage: guest_image.py FOLDER   (as devstack/lib/guest.sh fills it)
"""
import sys

from cloud import Cloud

NAME = 'guest'
# What the agent's tests of libvirt boot it with (tests/harness/src/hypervisor/domain.xml), and a
# clock that is right: on a busy machine the kernel measures the TSC of an emulated processor wrong,
# and the guest's time then runs ahead by seconds.
COMMAND_LINE = 'console=ttyS0 quiet panic=-1 clocksource=acpi_pm'


def upload(cloud, body, content):
    """Makes an image and gives its id."""
    image = cloud.request('image', 'POST', '/v2/images', dict(body, visibility='public')).json()['id']
    cloud.session.put('%s/v2/images/%s/file' % (cloud.endpoints['image'], image), data=content,
                      headers={'Content-Type': 'application/octet-stream'}).raise_for_status()
    return image


def main():
    cloud = Cloud()
    if cloud.request('image', 'GET', '/v2/images?name=' + NAME).json()['images']:
        return
    parts = {}
    for part, kind in (('vmlinux', 'aki'), ('initrd', 'ari')):
        with open('%s/%s' % (sys.argv[1], part), 'rb') as file:
            parts[part] = upload(cloud, {'name': '%s-%s' % (NAME, part), 'disk_format': kind, 'container_format': kind}, file)
    upload(cloud, {'name': NAME, 'disk_format': 'raw', 'container_format': 'bare', 'kernel_id': parts['vmlinux'],
                   'ramdisk_id': parts['initrd'], 'os_command_line': COMMAND_LINE, 'img_hv_type': 'qemu',
                   'hw_rng_model': 'virtio', 'hw_video_model': 'none'}, b'\0' * (1 << 20))


if __name__ == '__main__':
    main()
