"""A loopback server that speaks all four protocols over real HTTP and plays a script.

    async with MockServer("text: Hello.") as server:
        client = OpenAI(base_url=f"{server.url}/v1", api_key="any")

By hand: `python -m dragoman.testing.mock --script FILE`.
"""
