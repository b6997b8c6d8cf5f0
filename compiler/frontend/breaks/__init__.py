"""Graph breaks: which operation runs in plain Python, and which frames the capture goes on with afterwards."""
