-- Three hours of a meter in Wh, a temperature, an angle and a supplier, and states from the third hour on.
INSERT INTO state_attributes VALUES (1, 0, '{"unit_of_measurement": "kWh", "device_class": "energy", "state_class": "total_increasing"}');
INSERT INTO states_meta VALUES (1, 'sensor.meter');
INSERT INTO states (metadata_id, state, attributes_id, last_updated_ts) VALUES (1, '5', 1, 1768154460);
INSERT INTO statistics_short_term (start_ts) VALUES (1), (2);
INSERT INTO statistics_meta VALUES (1, 'sensor.meter', 'recorder', 'Wh', 0, 1, NULL, 0),
    (2, 'sensor.outside', 'recorder', '°C', 1, 0, NULL, 1), (3, 'sensor.wind', 'recorder', '°', NULL, 0, NULL, 2),
    (4, 'tibber:consumption', 'tibber', 'kWh', 0, 1, 'Tibber', 0), (5, 'sensor.none', 'recorder', NULL, 0, 0, NULL, 0);
INSERT INTO statistics (metadata_id, start_ts, state, sum) VALUES (1, 1768147200, 1000, 0), (4, 1768147200, 1.5, 1.5);
INSERT INTO statistics (metadata_id, start_ts, mean, min, max) VALUES (2, 1768147200, 20.0, 1, 30), (3, 1768147200, 350.5, NULL, NULL);
INSERT INTO statistics (metadata_id, start_ts, state, sum) VALUES (1, 1768150800, 1500, 1), (4, 1768150800, 0.5, 2);
INSERT INTO statistics (metadata_id, start_ts, mean, min, max) VALUES (2, 1768150800, 20.1, 1, 30), (3, 1768150800, 351.5, NULL, NULL);
INSERT INTO statistics (metadata_id, start_ts, state, sum) VALUES (1, 1768154400, 2000, 2), (4, 1768154400, 2, 4);
INSERT INTO statistics (metadata_id, start_ts, mean, min, max) VALUES (2, 1768154400, 20.2, 1, 30), (3, 1768154400, 352.5, NULL, NULL);
