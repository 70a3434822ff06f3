"""The messages of the contract, made from its description: no generated code that would belong to
one version of protobuf."""
import os

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = 'ebbtide.plugin.v1'
SERVICE = PACKAGE + '.Plugin'


def _pool():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'plugin.desc')
    with open(path, 'rb') as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for one in files.file:
        pool.Add(one)
    return pool


_POOL = _pool()


def message(name):
    """The class of a message."""
    descriptor = _POOL.FindMessageTypeByName('%s.%s' % (PACKAGE, name))
    if hasattr(message_factory, 'GetMessageClass'):  # protobuf 4.22 and later
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_POOL).GetPrototype(descriptor)


DescribeRequest = message('DescribeRequest')
Description = message('Description')
WeighRequest = message('WeighRequest')
CostRequest = message('CostRequest')
FilterRequest = message('FilterRequest')
Numbers = message('Numbers')
Verdicts = message('Verdicts')


def column(sent):
    """A column as a list: numbers, texts, or lists of numbers."""
    kind = sent.WhichOneof('kind')
    if kind == 'texts':
        texts = list(sent.texts.texts)
        return [texts[code] for code in sent.texts.codes]
    if kind == 'groups':
        numbers, ends = list(sent.groups.numbers), list(sent.groups.offsets)
        return [numbers[a:b] for a, b in zip(ends, ends[1:])]
    return list(sent.numbers.numbers)
