"""REST client of the commands, the agent and the workload manager. Standard library only."""

from fairbank.rest.client.address import Address, parse_address
from fairbank.rest.client.client import Client
from fairbank.rest.client.response import Json, Refused
from fairbank.rest.client.signers import MungeSigner, Signer, TokenSigner

__all__ = [
    "Address",
    "Client",
    "Json",
    "MungeSigner",
    "Refused",
    "Signer",
    "TokenSigner",
    "parse_address",
]
