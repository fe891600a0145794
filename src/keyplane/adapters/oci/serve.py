"""The read endpoint of a layout, in the style of OCI distribution: manifests and blobs by GET.

Nothing is listed, and nothing is written here. The repository's name is any, as there is one store.
"""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from keyplane.adapters.oci import descriptors
from keyplane.adapters.oci.layout import Layout
from keyplane.ports.errors import PortError


def application(layout: Layout, beside: Sequence[Route] = ()) -> Starlette:
    """`beside` are routes of others at the same address."""
    return Starlette(routes=[*routes(layout), *beside])


def routes(layout: Layout) -> list[Route]:
    """GET, and with it HEAD."""

    async def version(_: Request) -> Response:
        return JSONResponse({}, headers={"Docker-Distribution-API-Version": "registry/2.0"})

    async def manifest(request: Request) -> Response:
        reference = request.path_params["reference"]
        try:
            document = layout.manifest(reference)
        except (PortError, OSError) as error:
            return _refusal(503, "UNAVAILABLE", str(error))
        if document is None:
            return _refusal(404, "MANIFEST_UNKNOWN", f"no manifest {reference}")
        headers = {"Docker-Content-Digest": descriptors.blob_digest(document)}
        return Response(document, media_type=descriptors.MANIFEST, headers=headers)

    async def blob(request: Request) -> Response:
        digest = request.path_params["digest"]
        if not descriptors.is_blob_digest(digest):
            return _refusal(400, "DIGEST_INVALID", f"{digest} is no digest")
        path = layout.blob(digest)
        if path is None:
            return _refusal(404, "BLOB_UNKNOWN", f"no blob {digest}")
        headers = {"Docker-Content-Digest": digest}
        return FileResponse(path, media_type="application/octet-stream", headers=headers)

    return [
        Route("/v2/", version),
        Route("/v2/{name:path}/manifests/{reference}", manifest),
        Route("/v2/{name:path}/blobs/{digest}", blob),
    ]


def _refusal(status: int, code: str, message: str) -> Response:
    return JSONResponse({"errors": [{"code": code, "message": message}]}, status_code=status)
