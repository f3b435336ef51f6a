"""Setups of stories that several files use."""

from __future__ import annotations

# One project with an allocation.
PHYSICS = """
    project physics
    open physics/cpu 0..1000 with 100
"""

# A project whose parent has little credit, with one held and one charged run.
COLLEGE = """
    project college
    project physics under college
    open physics/cpu 0..1000 with 100
    open college/cpu 0..1000 with 50 limit 10
    hold 9 bob physics/cpu 10 until 500
    hold 8 bob physics/cpu 10 until 500
    charge 8 10
"""

# A bank that has a reason to refuse every kind of request.
REFUSALS = """
    project physics
    project optics
    open physics/cpu 0..1000 with 100
    open physics/cpu:next 1000..2000
    open optics/cpu 0..1000 with 2
    open optics/gpu 0..1000 limit 10
    hold 6 carol optics/gpu 5
    cap bob physics/cpu 10
    hold 9 carol physics/cpu 10
    charge 9 5
    deposit physics/cpu:next 1 key k
    freeze optics/cpu
    member physics alice pi
    member physics bob coordinator
    token laptop alice
"""

# One request of each kind: of staff, of runs, and refused ones.
EVERYTHING = """
    project college
    project physics under college
    member physics alice pi
    member physics bob member
    member physics bob none
    token laptop alice
    token phone bob until 900 scope agent:darwin,write
    revoke laptop
    open college/cpu 0..1000 with 20 shared yes
    open physics/cpu 0..500 with 100 limit 10 note annual-grant
    open physics/cpu:next 500..1000
    cap bob physics/cpu 30
    cap carol physics/cpu 5
    cap carol physics/cpu none
    deposit physics/cpu 50 key d
    withdraw physics/cpu 5
    transfer 5 physics/cpu => physics/cpu:next
    hold 1 alice physics/cpu 60 until 400 \
        details name=relax,qos=normal,nodes=2,cpus=8,tres=cpu:8,limit_seconds=100
    adjust 1 70 until 300 details limit_seconds=120
    hold 2 bob physics/cpu 20
    hold 3 bob physics/cpu 25                   -> CAPPED
    hold 4 alice physics/gpu 1                  -> NO_ALLOCATION
    charge 2 15
    refund 2 5
    undo 27 physics/cpu 2
    refund 2 5
    release 5 alice physics/cpu
    charge 6 carol physics/cpu 10 details name=fit,cpus=4,cpu_seconds=9
    hold 7 alice physics/cpu 5
    release 7 details exit_status=256
    now 300
    lapse 1
    charge 1 200 details name=relax,exit_status=9,cpu_seconds=99      -> ok written_off 70
    hold 8 alice college/cpu 20
    freeze physics/cpu:next
    withdraw physics/cpu:next 99 key w          -> NOT_ENOUGH
    amend physics/cpu period 0..450
    policy record
    charge 9 alice physics/cpu 3                -> ok remaining -3
"""
