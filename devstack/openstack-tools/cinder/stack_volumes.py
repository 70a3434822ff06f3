"""A driver of cinder-volume for a cloud whose computes run a fake hypervisor: each volume and each
snapshot is a sparse file. A connection names the file, and nothing is exported to the host."""
import os

from oslo_config import cfg

from cinder import exception, utils
from cinder.volume import driver

GIB = 1024 ** 3


class Files(driver.VolumeDriver):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.folder = os.path.join(cfg.CONF.state_path, 'volumes')

    def check_for_setup_error(self):
        os.makedirs(self.folder, exist_ok=True)

    def local_path(self, volume):
        """The file of a volume or of a snapshot."""
        return os.path.join(self.folder, volume.name)

    def _update_volume_stats(self):
        self._stats = {
            'volume_backend_name': self.configuration.volume_backend_name,
            'vendor_name': 'Ebbtide', 'driver_version': '1', 'storage_protocol': 'file',
            'total_capacity_gb': 'infinite', 'free_capacity_gb': 'infinite',
            'reserved_percentage': 0, 'multiattach': True, 'QoS_support': False}

    # Volumes and snapshots.

    def create_volume(self, volume):
        with open(self.local_path(volume), 'wb') as file:
            file.truncate(volume.size * GIB)

    def delete_volume(self, volume):
        try:
            os.remove(self.local_path(volume))
        except FileNotFoundError:
            pass

    def extend_volume(self, volume, new_size):
        os.truncate(self.local_path(volume), new_size * GIB)

    def _copy(self, source, copy):
        if not os.path.exists(self.local_path(source)):
            raise exception.VolumeBackendAPIException(data='%s has no file' % source.name)
        utils.execute('cp', '--sparse=always', self.local_path(source), self.local_path(copy))

    def create_snapshot(self, snapshot):
        self._copy(snapshot.volume, snapshot)

    delete_snapshot = delete_volume

    def create_volume_from_snapshot(self, volume, snapshot):
        self._copy(snapshot, volume)
        self.extend_volume(volume, volume.size)

    def create_cloned_volume(self, volume, src_vref):
        self._copy(src_vref, volume)
        self.extend_volume(volume, volume.size)

    def copy_image_to_volume(self, context, volume, image_service, image_id):
        """As it is: all images of this cloud are raw."""
        with open(self.local_path(volume), 'wb') as file:
            image_service.download(context, image_id, file)
        self.extend_volume(volume, volume.size)

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """In place of Cinder's way, which converts the image with qemu-img first."""
        if image_meta['disk_format'] != 'raw':
            return None, False
        self.copy_image_to_volume(context, volume, image_service, image_meta['id'])
        return {}, True

    # Connections.

    def initialize_connection(self, volume, connector):
        return {'driver_volume_type': 'local', 'data': {'device_path': self.local_path(volume)}}

    def terminate_connection(self, volume, connector, **options):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass
