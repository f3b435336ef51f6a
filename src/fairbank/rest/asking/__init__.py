"""What is asked of us: the request as handlers see it, and its body, its parameters and its reports read strictly."""

from fairbank.rest.asking.request import BODY_MAX, DRY_RUN, JUDGED, SENT, Asking, Judged, is_json

__all__ = ["BODY_MAX", "DRY_RUN", "JUDGED", "SENT", "Asking", "Judged", "is_json"]
