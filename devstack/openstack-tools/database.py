"""The stack's MariaDB, read and written as root over its socket."""
import os

import pymysql
import pymysql.cursors

HOME = os.environ['STACK_HOME']


def connect(database=None):
    return pymysql.connect(unix_socket=HOME + '/run/mysql.sock', user='root', database=database, autocommit=True,
                           cursorclass=pymysql.cursors.DictCursor)


def rows(statement, *arguments):
    """All rows of one statement, each a dict."""
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(statement, arguments or None)
        return list(cursor.fetchall())


def one(statement, *arguments):
    """The first value of the first row."""
    return next(iter(rows(statement, *arguments)[0].values()))


def local_disk(cell):
    """SQL: the GB that the server `i` of a cell's database takes of its host's disk. The root disk
    of a server that boots from a volume is in Cinder."""
    return ("i.ephemeral_gb + if(exists(select 1 from %s.block_device_mapping b where b.instance_uuid = i.uuid "
            "and b.deleted = 0 and b.boot_index = 0 and b.destination_type = 'volume'), 0, i.root_gb)" % cell)


def run(*statements):
    """Statements without an answer, on one connection. Tables without a schema are Placement's."""
    with connect('placement') as connection, connection.cursor() as cursor:
        for statement in statements:
            if statement.strip():
                cursor.execute(statement)
