"""What ``linkwise demo`` shows: exhibits, their pictures and their page."""
