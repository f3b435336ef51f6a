"""Trees of associations with known figures."""

V1 = """
A 40
    B 30
        U1 1 20
    C 10
        U2 1 25
        U3 1 0
D 60
    E 25
        U4 1 25
    F 35
        U5 1 0
G 0
    U6 0 30
"""

V2 = (
    V1
    + """
H 50
    HTA parent
        T1 parent 10
        T2 30 10
        T3 50 25
    R1 parent 20
    R2 40 20
    R3 50 25
"""
)

V3 = """
u1 10 0
u2 10 10
aA 40
    aAA 30
        uAA1 1 20
    aAB 10
        uAB1 1 25
        uAB2 1 0
aB 60
    aBA 25
        uBA1 1 25
    aBB 35
        uBB1 1 0
aC 0
    uC1 0 30
aD 50
    uD1 parent 20
    uD2 40 20
    uD3 50 25
    aDA parent
        uDA1 parent 10
        uDA2 30 10
        uDA3 50 25
aE 10
    aE1 10 0
    aE2 10 0
aF 20
    uF1 10 0
    uF2 20 0
aG 8
    uG1 10 10
    aGA 10
        uGA1 20 4
        uGA2 20 6
"""

V4 = """
A 1
    a1 1 30
    a2 1 10
B 1
    b1 1 20
    b2 1 20
"""

V5 = """
A 2
    a1 1 40
    a2 1 0
B 2
    b1 1 10
    b2 1 30
C 1
    c1 1 0
    c2 1 0
"""

V6 = """
a 10
    u1 1 0
    u2 0 0
b 0
    u3 1 0
"""

V7 = """
physics 60
    alice 1 300
    bob 3 100
chem 40
    carol 1 600
    dave parent 0
bio 0
    erin 1 0
"""

V8 = """
lab1 244
    u1 parent 100
    u2 parent 300
lab2 500
    u3 parent 100
lab3 256
    u4 parent 0
    u5 parent 500
"""

V9 = """
eng 1
    eng_sub parent
        s1 1 5
        s2 1 15
    e1 1 20
art 1
    r1 1 60
"""
