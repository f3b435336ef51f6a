"""Stories of the registry: who may grant which role, and the life of a token."""

from __future__ import annotations

from tests.bank.stories import play_story


def test_roles_are_granted_and_removed_by_higher_roles() -> None:
    story = play_story("""
        project physics
        member physics alice pi
        member physics bob coordinator by alice
        member physics carol member by bob
        member physics carol coordinator by bob     -> ROLE_ABOVE
        member physics alice member by bob          -> ROLE_ABOVE
        member physics alice none by bob            -> ROLE_ABOVE
        member physics bob none by bob              -> ROLE_ABOVE
        member physics alice none by alice          -> ROLE_ABOVE
        member physics bob none by carol            -> ROLE_ABOVE
        member chemistry bob member by alice        -> UNKNOWN_PROJECT
        """)
    assert {member.uid: member.role.value for member in story.work.members.values()} == {
        1001: "pi",
        1002: "coordinator",
        1003: "member",
    }


def test_role_at_the_time_of_the_transaction_counts() -> None:
    """Bob read the role of a member whom staff then made PI. Bob's own earlier role no longer
    counts.
    """
    play_story("""
        project physics
        member physics bob coordinator
        member physics alice member
        member physics alice pi
        member physics alice none by bob            -> ROLE_ABOVE
        member physics bob member by alice
        member physics carol member by bob          -> ROLE_ABOVE
        """)


def test_user_without_a_role_removes_none() -> None:
    play_story("""
        project physics
        member physics bob none by carol            -> ROLE_ABOVE
        member physics carol none by carol          -> ROLE_ABOVE
        """)


def test_token_is_issued_once_and_revoked_once() -> None:
    story = play_story("""
        token laptop alice until 500
        token laptop alice until 500                -> again
        token laptop alice until 501                -> TOKEN_TAKEN
        token laptop bob until 500                  -> TOKEN_TAKEN
        token phone bob key k
        token phone bob key k                       -> again
        token phone alice key k                     -> KEY_REUSED
        revoke laptop by bob                        -> UNKNOWN_TOKEN
        now 7
        revoke laptop by alice
        revoke laptop                               -> UNKNOWN_TOKEN
        revoke tablet                               -> UNKNOWN_TOKEN
        """)
    assert [
        (token.id, token.label, token.uid, token.revoked) for token in story.work.tokens.values()
    ] == [(1, "laptop", 1001, 7), (2, "phone", 1002, None)]


def test_expired_token_cannot_be_revoked() -> None:
    play_story("""
        token laptop alice until 500
        now 499
        token phone alice until 500
        revoke laptop
        now 500
        revoke phone                                -> UNKNOWN_TOKEN
        """)


def test_repeated_token_request_returns_its_number() -> None:
    story = play_story("token laptop alice key k")
    story.apply_line("token laptop alice key k")
    assert getattr(story.outcome, "token", None) == 1


def test_users_cap_only_lower_roles() -> None:
    play_story("""
        project physics
        member physics alice pi
        member physics bob coordinator by alice
        open physics/cpu 0..1000 with 100
        cap bob physics/cpu 10 by alice             -> ok
        cap bob physics/cpu none by bob             -> ROLE_ABOVE
        cap alice physics/cpu 0 by bob              -> ROLE_ABOVE
        cap alice physics/cpu 0 by alice            -> ROLE_ABOVE
        cap carol physics/cpu 5 by bob              -> ok
        cap bob physics/cpu none by carol           -> ROLE_ABOVE
        cap alice physics/cpu 50                    -> ok
        """)
