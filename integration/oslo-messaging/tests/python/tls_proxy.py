"""A broker with TLS: takes TLS connections and passes them on to a broker without.

    tls_proxy.py FOLDER BROKER_PORT [client]

With "client" clients must show a certificate of the CA.

It writes READY and the port.
"""
import asyncio
import ssl
import sys

folder, broker_port = sys.argv[1], int(sys.argv[2])


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve(reader, writer):
    there_reader, there_writer = await asyncio.open_connection("127.0.0.1", broker_port)
    await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/broker.pem", f"{folder}/broker.key")
    if sys.argv[3:] == ["client"]:
        context.load_verify_locations(f"{folder}/ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print("READY", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
