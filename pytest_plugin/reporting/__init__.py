"""What a judged run says, and where: failures, rows, the summary, JUnit's XML, annotations."""
